// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What the standard directories are called in languages other than English.
///
/// A directory is called so if it has the name and a file `.localized` in it; one that was given another name
/// keeps that.
package enum FolderNames {
  /// What a directory is called in a language: the English name where the language is English; nil where
  /// there is no such directory, or no table of the language.
  package static func name(of folder: String, in language: String) -> String? {
    guard let column = names.firstIndex(of: folder) else { return nil }
    if language == "en" { return folder }
    return tables[language].flatMap { $0.indices.contains(column) ? $0[column] : nil }
  }

  /// The languages that there are tables of, besides English.
  package static var languages: [String] { tables.keys.sorted() }

  /// The directories that have a name in each language.
  package static var names: [String] { columns }

  private static let columns = split(table.prefix { $0 != "\n" })
  private static let tables: [String: [String]] = {
    var tables: [String: [String]] = [:]
    for line in table.split(separator: "\n").dropFirst() {
      let words = line.split(separator: ":", maxSplits: 1)
      if words.count == 2 { tables[String(words[0])] = split(words[1]) }
    }
    return tables
  }()

  private static func split(_ line: Substring) -> [String] { line.split(separator: ",").map(String.init) }

  /// The names in English, and those in each language in the same order.
  private static let table: Substring = """
    Applications,Desktop,Documents,Downloads,Drop Box,Fonts,Library,Movies,Music,Network,\
    Pictures,Public,Shared,Sites,System,Users,Utilities,Volumes
    cs:Aplikace,Plocha,Dokumenty,Stahování,Schránka,Písma,Knihovna,Filmy,Hudba,Síť,Obrázky,\
    Veřejné,Sdílené,Weby,Systém,Uživatelé,Utility,Svazky
    da:Programmer,Skrivebord,Dokumenter,Overførsler,Postkasse,Skrifter,Bibliotek,Film,Musik,\
    Netværk,Billeder,Offentlig,Delt,Websteder,System,Brugere,Hjælpeprogrammer,Enheder
    de:Programme,Schreibtisch,Dokumente,Downloads,Briefkasten,Schriften,Library,Filme,Musik,\
    Netzwerk,Bilder,Öffentlich,Geteilt,Websites,System,Benutzer,Dienstprogramme,Volumes
    es:Aplicaciones,Escritorio,Documentos,Descargas,Buzón,Tipos de letra,Biblioteca,Películas,\
    Música,Red,Imágenes,Público,Compartido,Sitios,Sistema,Usuarios,Utilidades,Volúmenes
    fi:Ohjelmat,Työpöytä,Dokumentit,Lataukset,Postilaatikko,Kirjasimet,Kirjasto,Elokuvat,\
    Musiikki,Verkko,Kuvat,Julkinen,Jaettu,Sivustot,Järjestelmä,Käyttäjät,Lisäohjelmat,Taltiot
    fr:Applications,Bureau,Documents,Téléchargements,Boîte de dépôt,Polices,Bibliothèque,Vidéos,\
    Musique,Réseau,Images,Public,Partagé,Sites,Système,Utilisateurs,Utilitaires,Volumes
    it:Applicazioni,Scrivania,Documenti,Download,Casella,Font,Libreria,Filmati,Musica,Rete,\
    Immagini,Pubblica,Condivisi,Siti,Sistema,Utenti,Utility,Volumi
    ja:アプリケーション,デスクトップ,書類,ダウンロード,ドロップボックス,フォント,ライブラリ,ムービー,ミュージック,ネットワーク,ピクチャ,パブリック,共有,サイト,システム,\
    ユーザ,ユーティリティ,ボリューム
    ko:응용 프로그램,데스크탑,문서,다운로드,보관함,서체,라이브러리,동영상,음악,네트워크,그림,공용,공유,사이트,시스템,사용자,유틸리티,볼륨
    nb:Programmer,Skrivebord,Dokumenter,Nedlastinger,Slippboks,Fonter,Bibliotek,Filmer,Musikk,\
    Nettverk,Bilder,Felles,Delt,Nettsteder,System,Brukere,Verktøy,Volumer
    nl:Programma's,Bureaublad,Documenten,Downloads,Postvak,Lettertypen,Bibliotheek,Films,Muziek,\
    Netwerk,Afbeeldingen,Openbaar,Gedeeld,Sites,Systeem,Gebruikers,Hulpprogramma's,Volumes
    pl:Programy,Biurko,Dokumenty,Pobrane rzeczy,Skrzynka,Czcionki,Biblioteka,Filmy,Muzyka,Sieć,\
    Obrazki,Publiczny,Udostępnione,Witryny,System,Użytkownicy,Narzędzia,Woluminy
    pt:Aplicativos,Mesa,Documentos,Downloads,Caixa de Entrada,Fontes,Biblioteca,Filmes,Música,\
    Rede,Imagens,Público,Compartilhado,Sites,Sistema,Usuários,Utilitários,Volumes
    pt-PT:Aplicações,Secretária,Documentos,Descargas,Caixa postal,Tipos de letra,Biblioteca,\
    Filmes,Música,Rede,Imagens,Pública,Partilhado,Sites,Sistema,Utilizadores,Utilitários,Volumes
    ru:Программы,Рабочий стол,Документы,Загрузки,Почтовый ящик,Шрифты,Библиотеки,Фильмы,Музыка,\
    Сеть,Изображения,Общие,Общее,Сайты,Система,Пользователи,Утилиты,Тома
    sv:Program,Skrivbord,Dokument,Hämtade filer,Brevlåda,Typsnitt,Bibliotek,Filmer,Musik,\
    Nätverk,Bilder,Publik,Delad,Webbplatser,System,Användare,Verktygsprogram,Volymer
    tr:Uygulamalar,Masaüstü,Belgeler,İndirilenler,Teslim Kutusu,Fontlar,Kitaplık,Filmler,Müzik,\
    Ağ,Resimler,Ortak,Paylaşılan,Siteler,Sistem,Kullanıcılar,İzlenceler,Diskler
    uk:Програми,Робочий стіл,Документи,Завантаження,Скринька,Шрифти,Бібліотека,Фільми,Музика,\
    Мережа,Зображення,Публічні,Спільні,Сайти,Система,Користувачі,Утиліти,Томи
    zh-Hans:应用程序,桌面,文稿,下载,投件箱,字体,资源库,影片,音乐,网络,图片,公共,共享,站点,系统,用户,实用工具,宗卷
    zh-Hant:應用程式,桌面,文件,下載項目,投件匣,字體,資源庫,影片,音樂,網路,圖片,公用,共享,網站,系統,使用者,工具程式,卷宗
    """
}
