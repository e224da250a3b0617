# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# make help lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
# BINDIR, SBINDIR, LIBDIR, INCLUDEDIR, UNITDIR, USERUNITDIR, MANDIR, BASHDIR, ZSHDIR and FISHDIR may be given too; mount-scripts/install.sh has the defaults.

# Found out where it is used.
RELEASE = $(shell . mount-scripts/need.sh && release_flags)

.PHONY: network volumes volume-speed scaling backup-speed spellings leases cluster purges storage-page help build test check fmt coherence sanitize sanitize-daemon fuzz programs stops mutants stress kills aborts bench requests transport neighbours backup-set itunes-form docs man install uninstall deb test-package test-package-short commands app-costs clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

build: ## build the program
	swift build $(RELEASE) --product insula

test: ## install what the tests need, run all of them
	mount-scripts/test.sh

check: ## formatting, headers, sizes, and the rules that the compiler does not know
	.ci/check

fmt: ## format the sources
	swift format -i -r Sources Tests Package.swift

# The unit tests, and with CommandsTests real mounts by a program that is built with the sanitizer too. Not the test that
# measures memory, of which a sanitizer needs much of its own, and not those that start a program for each of thousands of calls.
UNITS := JSONTests ContentLinesTests PolicyTests LinuxIOTests BundlesTests StoreTests AppsTests CommandsTests FuseTests VolumeTests
# XCTest and Foundation leak a little of their own, so leaks are not looked for here.
# The thread sanitizer must be told of Swift's Mutex: see mutex.c. Swift's own clang is beside the swift program.
# A process for each module: all of them in one are too much for the thread sanitizer.
sanitize: ## the unit tests under the thread and the address sanitizer
	mkdir -p .build
	"$(dir $(realpath $(shell command -v swift)))clang" -shared -fPIC -o .build/mutex.so mount-scripts/stress/mutex.c
	swift build --build-tests --scratch-path .build/thread --sanitize=thread
	for unit in $(UNITS); do LD_PRELOAD=$(CURDIR)/.build/mutex.so swift test --skip-build --scratch-path .build/thread \
	  --sanitize=thread --filter "^$$unit\." --skip 'NodeMemoryTests|Stopped' || exit 1; done
	swift build --build-tests --scratch-path .build/address --sanitize=address
	for unit in $(UNITS); do ASAN_OPTIONS=detect_leaks=0 swift test --skip-build --scratch-path .build/address \
	  --sanitize=address --filter "^$$unit\." --skip 'NodeMemoryTests|Stopped' || exit 1; done

# Minutes, and as root, so not part of the tests.
sanitize-daemon: ## the daemon itself under load, under the thread and the address sanitizer
	mount-scripts/stress.sh --sanitize thread
	mount-scripts/stress.sh --sanitize address

# The tests do a share of it; this is all of it, the same in every run. With all of a program's optimizations, or it takes hours.
fuzz: ## a million damaged inputs to each reader, twenty thousand damages to a signed bundle; some minutes
	INSULA_FUZZ=1000000 INSULA_DAMAGES=20000 swift test -c release -Xswiftc -enable-testing --scratch-path .build/fuzz \
	  --filter '^BundlesTests\.(PropertyListFuzzTests|ArchiveFuzzTests|SignatureFuzzTests|EveryBitTests|BundleSignatureTests/everyBitCounts)|^CommandsTests\.AppSocketTests/senseless|^ContentLinesTests\.ContentLinesFuzzTests'
	place=$$(mktemp -d); for seed in 1 2 3 4 5 6 7 8 9 10; do mkdir $$place/$$seed; .build/fuzz/release/insula-damaged every $$seed $$place/$$seed || exit 1; done; rm -rf $$place

# The tests do two of them. PROGRAMS="vim git" does some; TABLE= writes no table.
TABLE = $(if $(PROGRAMS),,--table Documentation/PROGRAMS.md)
programs: build ## twelve programs of the machine as apps that work in their views; writes Documentation/PROGRAMS.md
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Programs/programs.py $(TABLE) $(PROGRAMS)

# The tests stop at two hundred calls of each.
stops: ## install, update and remove an app, purge, killed at each of their system calls; some minutes
	INSULA_STOPS=all swift test --filter '^AppsTests\.Stopped(Installer|Purge)Tests'

# PURGE="starts --starts 500" does less of one. The tests do a share of the starts.
purges: build ## ten thousand starts of an app raced against purges; what others notice of one of a million files; an hour, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/purge.py $(PURGE)

# The tests do two thousand.
spellings: ## a hundred thousand operations on random names in two spellings against a model, in four kinds of mounts; minutes, as root
	INSULA_SPELLINGS=100000 swift test --filter '^MountTests\.SpellingMountTests/namesAreAsInTheModel'

# The tests do five hundred schedules. LEASES="--places A B" takes two mounts of one filesystem, LEASES="--rounds 3" does less.
leases: build ## ten thousand simulated schedules of machines that want one store, and twenty real ones; half an hour, as root
	INSULA_LEASES=10000 swift test -c release -Xswiftc -enable-testing --scratch-path .build/fuzz --filter '^PolicyTests\.LeaseTests'
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Leases/leases.py $(LEASES)

# Needs glusterfs-server, glusterfs-client, rclone, avahi-daemon, avahi-utils, libnss-mdns and iproute2.
network: build ## two machines as network namespaces, a server of two bricks between them, a network that both join; minutes, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Network/network.sh

# CLUSTER="--rounds 0 --kills 0 ceph" leaves the lease and the kills out, and GlusterFS. Needs glusterfs-server and
# glusterfs-client; ceph-mon, ceph-mgr, ceph-osd, ceph-mds and ceph-fuse; postgresql.
cluster: build ## a store on GlusterFS and on CephFS with two clients: parity, programs, what dies, the lease; an hour, as root
	swift build --product insula-conformance
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Cluster/cluster.sh $(CLUSTER)

# VOLUMES="ntfs sshfs" tries some kinds. moto, the server for S3, is fetched from PyPI; MOTO_SERVER names one that is there.
volumes: build ## the parity list, and an app with a grant that tries to get beyond it, on volumes of each kind; an hour, as root
	swift build --product insula-conformance
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" CONFORMANCE="$$(swift build --show-bin-path)/insula-conformance" Tests/Volumes/parity.py $(VOLUMES)
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Volumes/grants.py $(VOLUMES)

# VOLUME_SPEED="rows ntfs" does some, VOLUME_SPEED=hang the second part alone.
volume-speed: build ## volumes beside the mounts of their own engines, and what others notice of a server that hangs; half an hour, as root
	swift build -c release --package-path Benchmarks
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" BENCH=Benchmarks/.build/release/insula-bench Benchmarks/volumes.py $(VOLUME_SPEED)

# SCALING="--quick running" does a tenth of one part.
scaling: build ## what grows how with files, users, apps, grants, volumes and machines: the figures of Documentation/SCALING.md; ten minutes, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/scaling.py $(SCALING)

# The tests do a share of it; this is all of it, the same in every run.
coherence: ## a hundred thousand steps through three views against a model, a minute of contention; half an hour, as root
	INSULA_COHERENCE_STEPS=100000 INSULA_COHERENCE_SECONDS=60 swift test -c release -Xswiftc -enable-testing --scratch-path .build/fuzz \
	  --filter '^MountTests\.CoherenceTests'

# It works on a copy. MUTANTS="lock-* gate-sticky" has those of the list alone, MUTANTS="--only-drawn --seed 7" draws what
# another run has drawn; 'mount-scripts/mutants.py --help' says more.
mutants: ## small faults in a copy of the tree, those of a list and 40 by lot: the tests must find them; tens of minutes, as root
	mount-scripts/mutants.py $(foreach word,$(MUTANTS),"$(word)")

stress: build ## load on real mounts, as root; mount-scripts/stress.sh --help says more
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" mount-scripts/stress.sh

# KILLS="--kills 20 --twice storm app" does less, or something else (--by SEGV, --by memory, --by processes, and the loads "leaks"
# and "nodes"); as root a store for all, else one of the user's own.
kills: build ## the process that serves is killed a hundred times under each of several loads; ten minutes
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Kills/kills.py $(KILLS)

# The tests do a share of it.
aborts: build ## 8,000 clients killed in the middle, 2,000 connections aborted, detached and unmounted; minutes, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Kills/aborts.py

bench: ## compare with the plain filesystem, bindfs and mergerfs
	mount-scripts/bench.sh

requests: build ## what the kernel requests for each file that tar, cp, git and others work on
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/requests.py

# The kernel offers io_uring for FUSE only where it is turned on; it is as it was afterwards.
transport: ## what a request costs before any daemon does anything, over /dev/fuse and over io_uring; a minute, as root
	mkdir -p .build
	cc -O2 -Wall -Wextra -o .build/transport Benchmarks/Transport/transport.c -lpthread
	parameter=/sys/module/fuse/parameters/enable_uring; before=$$(cat $$parameter) && echo Y >$$parameter && \
	  { unshare -m .build/transport 11; status=$$?; echo $$before >$$parameter; exit $$status; }

# The tests check the page without a browser. PICTURES=DIR keeps what was seen.
storage-page: build ## the page of 'insula storage --html' in Chromium; requires chromium
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/StoragePage/storage-page.sh

neighbours: build ## one user takes all they can while another works: how much slower that becomes; half an hour, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/Neighbours/neighbours.py --save

# It takes pyiosbackup from PyPI into a virtual environment of its own. ITUNES_FORM=--damage must fail.
itunes-form: build ## a backup in the form of iTunes, read by a program of somebody else's and imported again; a minute, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Backup/itunes_form.py $(ITUNES_FORM)

docs: ## reference documentation, in .build/docs
	swift package dump-symbol-graph --minimum-access-level package
	docc convert --fallback-display-name Insula --fallback-bundle-identifier insula \
	  --additional-symbol-graph-dir $$(find .build -type d -name symbolgraph | head -n 1) --output-dir .build/docs

man: build ## the pages of the manual, in .build/man, checked where there is man-db with groff, or mandoc
	rm -rf .build/man
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" mount-scripts/man.sh .build/man
	if command -v groff >/dev/null || command -v mandoc >/dev/null; then mount-scripts/man.sh --check .build/man; fi

export PREFIX DESTDIR BINDIR SBINDIR LIBDIR INCLUDEDIR UNITDIR USERUNITDIR MANDIR BASHDIR ZSHDIR FISHDIR

install: build ## install the program, the helper of mount(8), the library for apps, the units, the manual and the completions (PREFIX=, DESTDIR=)
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" mount-scripts/install.sh install

uninstall: ## take away what install has put there
	mount-scripts/install.sh uninstall

# debhelper runs 'make install' into a directory of its own. As any user; nothing is installed. What was left of the last
# time is removed here: 'debian/rules clean' removes backup files everywhere in the tree.
deb: ## a Debian package, in .build/deb; requires debhelper
	rm -rf debian/insula debian/.debhelper debian/debhelper-build-stamp debian/files debian/*.debhelper* debian/*.substvars
	mkdir -p .build/deb
	DEB_RULES_REQUIRES_ROOT=no DEBDIR="$(CURDIR)/.build/deb" debian/rules binary
	if command -v lintian >/dev/null; then lintian --fail-on error,warning .build/deb/insula_*.deb; fi

# The root is made once and kept in .build/package-test.
test-package: deb ## install, use, upgrade and remove the package in a clean Debian root, as root; half a minute with a kept root
	Tests/Package/package-test.sh

# The same within this machine's own root, whose files it leaves as they are.
test-package-short: deb ## the same without a clean root, as root; what CI runs
	Tests/Package/package-test.sh --short

# BACKUP_SET="--trees 10000 --tools tar,restic" does less. The tests do a share of it.
backup-set: build ## four backup programs in the view for backups, compared with the rules over 100,000 random trees; an hour, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Tests/Backup/backup_set.py $(BACKUP_SET)

backup-speed: build ## restic in the view for backups, beside the plain directory; some minutes on a quiet machine, as root
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/backup.py $(BACKUP_SPEED)

# The results are kept in git where --save is given.
commands: build ## how long short commands take, beside other programs; a minute
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/commands.py $(COMMANDS)

# APPS="--before PROGRAM" compares with another version, '-o nopassthrough' measures another mode.
app-costs: build ## what an app pays for consent, grants and calls through its socket; a minute
	INSULA="$$(swift build $(RELEASE) --show-bin-path)/insula" Benchmarks/apps.py $(APPS)

clean: ## remove what was built
	rm -rf .build
