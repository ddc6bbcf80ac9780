#!/bin/sh
# Makes two Debian packages from the release build: tocsin_VERSION_ARCHITECTURE.deb, and tocsin-dbgsym with the debug
# symbols, which gdb finds by itself. Nothing is compiled here, and no root is needed.
#   tools/package.sh [FOLDER]             where the packages go; build/package unless given
#   REVISION=2 tools/package.sh           VERSION-2: for a package of the same version that is built again
#   TOCSIN_BIN_DIR=... tools/package.sh   the folder of the programs; build/release/bin unless given
set -eu
cd "$(dirname "$0")/.."
bin=${TOCSIN_BIN_DIR:-build/release/bin}
unset TOCSIN_BIN_DIR # tocsind takes variables that begin with TOCSIN_ for options
mkdir -p "${1:-build/package}"
target=$(cd "${1:-build/package}" && pwd)

version=$("$bin/tocsind" --version | sed 's/^tocsind //')${REVISION:+-$REVISION}
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/tocsin
symbols=$work/tocsin-dbgsym
# dpkg-deb gives no file a later time than this, so that the same commit gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022

# The file with this text, which has to be read from stdin.
put() { # mode, path below the root
  mkdir -p "$(dirname "$root/$2")"
  cat >"$root/$2"
  chmod "$1" "$root/$2"
}

programs() {
  mkdir -p "$root/usr/bin"
  for program in tocsind tocsin; do
    id=$(readelf -n "$bin/$program" | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] || { echo "$bin/$program has no build id: its debug symbols could not be found" >&2; exit 1; }
    debug=$symbols/usr/lib/debug/.build-id/$(printf %.2s "$id")/${id#??}.debug
    mkdir -p "$(dirname "$debug")"
    objcopy --only-keep-debug --compress-debug-sections "$bin/$program" "$debug"
    chmod 644 "$debug"
    strip --strip-all --remove-section=.comment -o "$root/usr/bin/$program" "$bin/$program"
    chmod 755 "$root/usr/bin/$program"
    ids="${ids:+$ids }$id"
  done
}

pages() {
  "$bin/tocsin" docs man | gzip -9n | put 644 usr/share/man/man1/tocsin.1.gz
  "$bin/tocsind" --print-docs man | gzip -9n | put 644 usr/share/man/man8/tocsind.8.gz
  "$bin/tocsin" docs bash | put 644 usr/share/bash-completion/completions/tocsin
  "$bin/tocsin" docs zsh | put 644 usr/share/zsh/vendor-completions/_tocsin
  "$bin/tocsin" docs fish | put 644 usr/share/fish/vendor_completions.d/tocsin.fish
  put 644 usr/share/doc/tocsin/copyright <LICENSE
  gzip -9nc CHANGELOG.md | put 644 usr/share/doc/tocsin/changelog.gz
  for example in tocsin-cluster.toml tocsin.service.d/cluster.conf prometheus/rules.yml grafana/tocsin.json; do
    put 644 "usr/share/doc/tocsin/examples/$(basename "$example")" <"deploy/$example"
  done
}

service() {
  put 644 usr/lib/systemd/system/tocsin.service <deploy/tocsin.service
  # The sample, with the one default that does not suit a service.
  "$bin/tocsind" --print-docs sample | sed 's|^#data_dir = .*|data_dir = "/var/lib/tocsin/data"|' |
    put 644 etc/tocsin/tocsin.toml
  grep -q '^data_dir = ' "$root/etc/tocsin/tocsin.toml"
  "$root/usr/bin/tocsind" --config "$root/etc/tocsin/tocsin.toml" --config-check >/dev/null
}

# What the libraries of the programs need, with their least versions.
dependencies() {
  mkdir -p "$work/debian"
  printf 'Source: tocsin\n\nPackage: tocsin\nArchitecture: any\n' >"$work/debian/control"
  (cd "$work" && dpkg-shlibdeps -O tocsin/usr/bin/tocsind tocsin/usr/bin/tocsin) | sed -n 's/^shlibs:Depends=//p'
}

control() { # folder of the package; further fields from stdin
  mkdir -p "$1/DEBIAN"
  {
    echo "Package: $(basename "$1")"
    echo "Version: $version"
    echo "Architecture: $architecture"
    echo "Maintainer: The Tocsin authors <tocsin@localhost>"
    echo "Installed-Size: $(du -k --apparent-size -s "$1" | cut -f1)"
    cat
  } >"$1/DEBIAN/control"
  (cd "$1" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
}

ids=
programs
pages
service
needed=$(dependencies)
[ -n "$needed" ]
control "$root" <<END
Depends: $needed, passwd
Recommends: ca-certificates
Section: net
Priority: optional
Description: timeout centre: hand it a job now, get it back at an exact later moment
 tocsind keeps jobs on disk, or in a Redis that many nodes share, and delivers
 each at its time, at least once, whatever crashes in between. The package has
 the server, the tocsin command and a systemd service. It needs an x86-64
 processor of the level v3 (AVX2).
END
echo /etc/tocsin/tocsin.toml >"$root/DEBIAN/conffiles"
install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
control "$symbols" <<END
Depends: tocsin (= $version)
Section: debug
Priority: optional
Build-Ids: $ids
Description: debug symbols for tocsin
END

# The symbols are compressed already.
dpkg-deb --root-owner-group -Zxz -z6 --build "$root" "$target" >/dev/null
dpkg-deb --root-owner-group -Zgzip -z1 --build "$symbols" "$target" >/dev/null
(cd "$target" && du -h "tocsin_${version}_$architecture.deb" "tocsin-dbgsym_${version}_$architecture.deb")
