#!/bin/sh
# Builds the wheel of the source tree that this script is in, and installs it with the locked packages, the manual and the
# completions, for the packages of AUR and Debian:
#   environment.sh ROOT PLACE   installs into ROOT, for a program that will lie in PLACE, such as /opt/kite-memory
# The packages come from PyPI, each held to its hash in requirements.lock.
set -eu
root=$1
place=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
cd "$source"

python3 -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet --require-hashes --requirement requirements-build.lock
"$work/build/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work/wheel" .

python3 -m venv "$root$place"
"$root$place/bin/python" -m pip install --quiet --require-hashes --no-compile --requirement requirements.lock
"$root$place/bin/python" -m pip install --quiet --no-deps --no-compile "$work"/wheel/*.whl

share=$root/usr/share
mkdir -p "$root/usr/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
    "$share/fish/vendor_completions.d"
kmem="$root$place/bin/kmem"
"$kmem" help --man | gzip -9n > "$share/man/man1/kmem.1.gz"
ln -s kmem.1.gz "$share/man/man1/kmem-hook.1.gz"
"$kmem" completion bash > "$share/bash-completion/completions/kmem"
"$kmem" completion zsh > "$share/zsh/site-functions/_kmem"
"$kmem" completion fish > "$share/fish/vendor_completions.d/kmem.fish"

"$root$place/bin/python" -m pip uninstall --quiet --yes pip setuptools
rm -f "$root$place"/bin/activate* "$root$place"/bin/Activate*
find "$root$place" -name direct_url.json -delete
find "$root$place" -name __pycache__ -prune -exec rm -r {} +
# The scripts and pyvenv.cfg name the folder in which they were made.
grep -rlIF --null "$root" "$root$place/bin" "$root$place/pyvenv.cfg" | xargs -0 -r sed -i "s|$root||g"
for name in kmem kmem-hook; do
    ln -s "$place/bin/$name" "$root/usr/bin/$name"
done
