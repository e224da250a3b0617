// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The types of the base system: what is known wherever no app says anything.
///
/// A line is a type: its identifier, what it conforms to, its extensions, its MIME types (the one that is
/// given for a file first), and what a person calls it. Of two types with the same extension, one is for
/// files and the other for directories.
enum BaseTypes {
  static let text: StaticString = """
    public.item||||item
    public.data|public.item|||document
    public.content||||content
    public.composite-content|public.content|||document
    public.directory|public.item||inode/directory|folder
    public.folder|public.directory|||folder
    public.volume|public.folder||inode/mount-point|volume
    public.symlink|public.item||inode/symlink|symbolic link
    com.apple.resolvable||||link
    com.apple.alias-file|public.data com.apple.resolvable|alias||alias
    com.apple.bookmark|public.data com.apple.resolvable|||bookmark
    com.apple.package|public.directory|||package
    com.apple.bundle|public.directory|||bundle
    com.apple.localizable-name-bundle|com.apple.bundle|||bundle
    com.apple.application||||application
    com.apple.application-bundle|\
    com.apple.application com.apple.localizable-name-bundle com.apple.package|app|\
    |application
    com.apple.application-file|com.apple.application public.data|||application
    com.apple.framework|com.apple.bundle|framework||framework
    com.apple.generic-bundle|com.apple.bundle com.apple.package|bundle||bundle
    com.apple.plugin|com.apple.bundle com.apple.package|plugin||plug-in
    com.apple.application-and-system-extension|com.apple.bundle com.apple.package|appex||app extension
    com.apple.xpc-service|com.apple.bundle com.apple.package|xpc||XPC service
    com.apple.systempreference.prefpane|com.apple.bundle com.apple.package|prefpane||preference pane
    com.apple.kernel-extension|com.apple.bundle com.apple.package|kext||kernel extension
    com.apple.xcode.dSYM|com.apple.bundle com.apple.package|dsym||debug symbols
    com.apple.xcode.project|com.apple.package|xcodeproj||Xcode project
    com.apple.dt.document.workspace|com.apple.package|xcworkspace||Xcode workspace
    com.apple.dt.playground|com.apple.package|playground||playground
    com.apple.photos.library|com.apple.package|photoslibrary||photo library
    com.apple.rtfd|com.apple.package public.composite-content|rtfd||RTFD document
    com.apple.installer-package|com.apple.package|pkg mpkg||installer package
    com.apple.installer-package-archive|public.data public.archive|pkg mpkg||installer package
    public.text|public.data public.content|||text
    public.plain-text|public.text|txt text asc|text/plain|plain text document
    public.utf8-plain-text|public.plain-text|||plain text document
    public.utf16-plain-text|public.plain-text|||plain text document
    public.delimited-values-text|public.text|||table
    public.comma-separated-values-text|public.delimited-values-text|csv|text/csv|CSV table
    public.tab-separated-values-text|public.delimited-values-text|tsv|text/tab-separated-values|TSV table
    public.rtf|public.text public.composite-content|rtf|application/rtf text/rtf|RTF document
    public.html|public.text|html htm|text/html|HTML document
    public.xhtml|public.xml|xhtml xht|application/xhtml+xml|XHTML document
    public.xml|public.text|xml|application/xml text/xml|XML document
    public.json|public.text|json|application/json|JSON document
    public.geojson|public.json|geojson|application/geo+json|GeoJSON document
    public.yaml|public.text|yaml yml|application/x-yaml|YAML document
    public.css|public.text|css|text/css|style sheet
    com.apple.property-list|public.data|plist|application/x-plist|property list
    com.apple.xml-property-list|com.apple.property-list public.xml|||property list
    com.apple.binary-property-list|com.apple.property-list|||property list
    net.daringfireball.markdown|public.plain-text|md markdown mkd|text/markdown|Markdown document
    org.tug.tex|public.text|tex ltx sty cls|text/x-tex|TeX document
    com.apple.xcode.strings-text|public.text|strings||strings file
    com.apple.log|public.plain-text|log|text/x-log|log
    com.apple.crashreport|public.plain-text|crash||crash report
    public.source-code|public.plain-text|||source code
    public.c-source|public.source-code|c|text/x-csrc|C source
    public.c-header|public.source-code|h|text/x-chdr|C header
    public.c-plus-plus-source|public.source-code|cpp cc cxx c++|text/x-c++src|C++ source
    public.c-plus-plus-header|public.c-header|hpp hh hxx h++ hp|text/x-c++hdr|C++ header
    public.objective-c-source|public.source-code|m|text/x-objcsrc|Objective-C source
    public.objective-c-plus-plus-source|public.source-code|mm|text/x-objc++src|Objective-C++ source
    public.swift-source|public.source-code|swift|text/x-swift|Swift source
    public.assembly-source|public.source-code|s asm||assembly source
    public.fortran-source|public.source-code|f f90 f95 for|text/x-fortran|Fortran source
    public.pascal-source|public.source-code|p pas|text/x-pascal|Pascal source
    com.sun.java-source|public.source-code|java|text/x-java|Java source
    org.rust-lang.rust-source|public.source-code|rs|text/rust|Rust source
    org.golang.go-source|public.source-code|go|text/x-go|Go source
    public.patch-file|public.plain-text|patch diff|text/x-patch|patch
    public.make-source|public.source-code|mk mak make|text/x-makefile|makefile
    public.script|public.source-code|||script
    public.shell-script|public.script|sh command|application/x-shellscript|shell script
    public.csh-script|public.shell-script|csh|application/x-csh|C shell script
    public.python-script|public.script|py|text/x-python|Python script
    public.ruby-script|public.script|rb|application/x-ruby|Ruby script
    public.perl-script|public.script|pl pm|application/x-perl|Perl script
    public.php-script|public.script|php php3 php4 php5 phps|application/x-php|PHP script
    com.netscape.javascript-source|public.source-code public.executable|js jsm mjs|\
    text/javascript application/javascript|JavaScript source
    com.apple.applescript.text|public.script|applescript||AppleScript
    public.executable|public.item|||program
    public.unix-executable|public.data public.executable||application/x-executable|program
    public.object-code|public.data public.executable|o|application/x-object|object code
    com.apple.mach-o-binary|public.object-code|||program
    com.apple.mach-o-dylib|com.apple.mach-o-binary|dylib||library
    com.microsoft.windows-executable|public.data public.executable|exe|\
    application/x-ms-dos-executable|Windows program
    com.microsoft.windows-dynamic-link-library|public.data public.executable|dll|\
    application/x-sharedlib|Windows library
    com.sun.java-class|public.data public.executable|class|application/x-java|Java class
    public.image|public.data public.content|||image
    public.jpeg|public.image|jpg jpeg jpe|image/jpeg|JPEG image
    public.jpeg-2000|public.image|jp2|image/jp2|JPEG 2000 image
    public.png|public.image|png|image/png|PNG image
    public.tiff|public.image|tif tiff|image/tiff|TIFF image
    public.heif|public.image|heif hif|image/heif|HEIF image
    public.heic|public.heif|heic|image/heif image/heic|HEIC image
    public.avif|public.heif|avif|image/avif|AVIF image
    public.svg-image|public.image public.xml|svg|image/svg+xml|SVG image
    public.camera-raw-image|public.image|||raw image
    com.adobe.raw-image|public.camera-raw-image|dng|image/x-adobe-dng|DNG image
    public.fax|public.image|||fax
    public.xbitmap-image|public.image|xbm|image/x-xbitmap|XBM image
    com.compuserve.gif|public.image|gif|image/gif|GIF image
    com.microsoft.bmp|public.image|bmp dib|image/bmp|BMP image
    com.microsoft.ico|public.image|ico|image/vnd.microsoft.icon|icon
    com.apple.icns|public.image|icns|image/x-icns|Apple icon
    com.apple.pict|public.image|pict pct pic|image/x-pict|PICT image
    com.adobe.photoshop-image|public.image|psd|image/vnd.adobe.photoshop|Photoshop image
    com.adobe.illustrator.ai-image|com.adobe.pdf public.image|ai|application/illustrator|Illustrator image
    org.webmproject.webp|public.image|webp|image/webp|WebP image
    com.ilm.openexr-image|public.image|exr|image/x-exr|OpenEXR image
    com.truevision.tga-image|public.image|tga tpic|image/x-tga|TGA image
    public.audiovisual-content|public.data public.content|||media
    public.movie|public.audiovisual-content|||movie
    public.video|public.movie|||movie
    public.audio|public.audiovisual-content|||sound
    com.apple.quicktime-movie|public.movie|mov qt|video/quicktime|QuickTime movie
    public.mpeg|public.movie|mpg mpeg mpe|video/mpeg|MPEG movie
    public.mpeg-2-video|public.video|m2v|video/mpeg|MPEG-2 movie
    public.mpeg-2-transport-stream|public.movie|ts m2t m2ts mts|video/mp2t|MPEG-2 transport stream
    public.mpeg-4|public.movie|mp4|video/mp4|MPEG-4 movie
    com.apple.m4v-video|public.mpeg-4|m4v|video/mp4 video/x-m4v|MPEG-4 movie
    public.avi|public.movie|avi|video/x-msvideo|AVI movie
    public.3gpp|public.movie|3gp 3gpp|video/3gpp|3GPP movie
    public.3gpp2|public.movie|3g2 3gp2 3gpp2|video/3gpp2|3GPP2 movie
    org.webmproject.webm|public.movie|webm|video/webm|WebM movie
    org.matroska.mkv|public.movie|mkv|video/x-matroska|Matroska movie
    com.microsoft.windows-media-wmv|public.movie|wmv|video/x-ms-wmv|Windows Media movie
    public.mp3|public.audio|mp3|audio/mpeg|MP3 sound
    public.mpeg-4-audio|public.audio public.mpeg-4|||MPEG-4 sound
    com.apple.m4a-audio|public.mpeg-4-audio|m4a|audio/mp4|MPEG-4 sound
    com.apple.mpeg-4-ringtone|public.mpeg-4-audio|m4r|audio/x-m4r|ringtone
    com.apple.protected-mpeg-4-audio-b|public.mpeg-4-audio|m4b|audio/x-m4b|audiobook
    public.aac-audio|public.audio|aac adts|audio/aac|AAC sound
    public.aiff-audio|public.audio|aif aiff|audio/x-aiff|AIFF sound
    public.aifc-audio|public.audio|aifc|audio/x-aifc|AIFF-C sound
    com.microsoft.waveform-audio|public.audio|wav|audio/x-wav|WAVE sound
    com.apple.coreaudio-format|public.audio|caf|audio/x-caf|Core Audio sound
    public.midi-audio|public.audio|mid midi kar|audio/midi|MIDI music
    org.xiph.flac|public.audio|flac|audio/flac|FLAC sound
    org.xiph.ogg-audio|public.audio|ogg oga|audio/ogg|Ogg sound
    org.xiph.opus|public.audio|opus|audio/x-opus+ogg|Opus sound
    public.playlist||||playlist
    public.m3u-playlist|public.text public.playlist|m3u m3u8|audio/x-mpegurl|M3U playlist
    public.archive|public.data|||archive
    public.disk-image|public.archive|||disk image
    public.zip-archive|public.archive|zip|application/zip|ZIP archive
    public.tar-archive|public.archive|tar|application/x-tar|tar archive
    org.gnu.gnu-zip-archive|public.archive|gz|application/gzip|gzip archive
    org.gnu.gnu-zip-tar-archive|org.gnu.gnu-zip-archive|tgz|application/x-compressed-tar|gzip tar archive
    public.bzip2-archive|public.archive|bz2 bz|application/x-bzip|bzip2 archive
    org.tukaani.xz-archive|public.archive|xz|application/x-xz|xz archive
    org.zstandard.zstd-archive|public.archive|zst|application/zstd|Zstandard archive
    org.7-zip.7-zip-archive|public.archive|7z|application/x-7z-compressed|7-Zip archive
    com.rarlab.rar-archive|public.archive|rar|application/vnd.rar|RAR archive
    public.cpio-archive|public.archive|cpio|application/x-cpio|cpio archive
    com.sun.java-archive|public.zip-archive public.executable|jar|application/x-java-archive|Java archive
    com.apple.xar-archive|public.archive|xar|application/x-xar|XAR archive
    com.apple.disk-image-udif|public.disk-image|dmg|application/x-apple-diskimage|disk image
    public.iso-image|public.disk-image|iso|application/x-cd-image|disk image
    com.adobe.pdf|public.data public.composite-content|pdf|application/pdf|PDF document
    com.adobe.postscript|public.data public.composite-content|ps|application/postscript|PostScript document
    com.adobe.encapsulated-postscript|com.adobe.postscript|eps epsf epsi|image/x-eps|EPS document
    org.idpf.epub-container|public.data public.composite-content|epub|application/epub+zip|e-book
    com.microsoft.word.doc|public.data public.composite-content|doc|application/msword|Word document
    com.microsoft.excel.xls|public.data public.composite-content|xls|application/vnd.ms-excel|Excel workbook
    com.microsoft.powerpoint.ppt|public.data public.composite-content|ppt|\
    application/vnd.ms-powerpoint|PowerPoint presentation
    org.openxmlformats.openxml|public.data|||Office document
    org.openxmlformats.wordprocessingml.document|org.openxmlformats.openxml public.composite-content|docx|\
    application/vnd.openxmlformats-officedocument.wordprocessingml.document|Word document
    org.openxmlformats.spreadsheetml.sheet|org.openxmlformats.openxml public.composite-content|xlsx|\
    application/vnd.openxmlformats-officedocument.spreadsheetml.sheet|Excel workbook
    org.openxmlformats.presentationml.presentation|org.openxmlformats.openxml public.composite-content|pptx|\
    application/vnd.openxmlformats-officedocument.presentationml.presentation|PowerPoint presentation
    org.oasis-open.opendocument|public.data public.composite-content|||OpenDocument
    org.oasis-open.opendocument.text|org.oasis-open.opendocument|odt|\
    application/vnd.oasis.opendocument.text|OpenDocument text
    org.oasis-open.opendocument.spreadsheet|org.oasis-open.opendocument|ods|\
    application/vnd.oasis.opendocument.spreadsheet|OpenDocument spreadsheet
    org.oasis-open.opendocument.presentation|org.oasis-open.opendocument|odp|\
    application/vnd.oasis.opendocument.presentation|OpenDocument presentation
    com.apple.iWork.Pages.pages|com.apple.package public.composite-content|pages||Pages document
    com.apple.iWork.Pages.sffpages|public.data public.composite-content|pages|\
    application/vnd.apple.pages|Pages document
    com.apple.iWork.Numbers.numbers|com.apple.package public.composite-content|numbers||Numbers spreadsheet
    com.apple.iWork.Numbers.sffnumbers|public.data public.composite-content|numbers|\
    application/vnd.apple.numbers|Numbers spreadsheet
    com.apple.iWork.Keynote.key|com.apple.package public.composite-content|key||Keynote presentation
    com.apple.iWork.Keynote.sffkey|public.data public.composite-content|key|\
    application/vnd.apple.keynote|Keynote presentation
    public.contact||||contact
    public.message||||message
    public.email-message|public.data public.message|eml|message/rfc822|e-mail message
    com.apple.mail.emlx|public.data public.message|emlx||e-mail message
    public.calendar-event||||calendar event
    com.apple.ical.ics|public.calendar-event public.text|ics|text/calendar|calendar
    public.vcard|public.text public.contact|vcf vcard|text/vcard|contact card
    public.font|public.data|||font
    public.truetype-ttf-font|public.font|ttf|font/ttf|TrueType font
    public.truetype-collection-font|public.font|ttc|font/collection|TrueType collection
    public.opentype-font|public.font|otf|font/otf|OpenType font
    public.database||||database
    public.calendar||||calendar
    public.url|public.data|||address
    public.file-url|public.url|||address
    com.apple.web-internet-location|public.data|webloc||web address
    com.apple.webarchive|public.data public.composite-content|webarchive||web archive
    com.microsoft.internet-shortcut|public.data|url|application/x-mswinurl|web address
    com.apple.mobileconfig|public.data|mobileconfig||configuration profile
    com.apple.mobileprovision|public.data|mobileprovision||provisioning profile
    com.apple.pkpass|public.data|pkpass|application/vnd.apple.pkpass|pass
    com.apple.pkpass-package|com.apple.package|pkpass||pass
    com.rsa.pkcs-12|public.data|p12 pfx|application/pkcs12 application/x-pkcs12|key store
    public.x509-certificate|public.data|cer der crt pem|\
    application/pkix-cert application/x-x509-ca-cert|certificate
    public.3d-content|public.content|||3D model
    public.standard-tesselated-geometry-format|public.data public.3d-content|stl|model/stl|STL model
    public.polygon-file-format|public.data public.3d-content|ply||PLY model
    public.geometry-definition-format|public.data public.3d-content|obj|model/obj|OBJ model
    com.pixar.universal-scene-description|public.data public.3d-content|usd usdc usda||USD scene
    com.pixar.universal-scene-description-mobile|com.pixar.universal-scene-description|usdz||USD scene
    """
}
