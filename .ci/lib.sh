# What `.ci/run` and `.ci/full` share; sourced, from the root of a checkout. What is downloaded stays in one
# cache folder. The log of a command that failed is printed by its ends, and kept whole in out/artefacts.
set -euo pipefail

root=$PWD
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export COLUMNS=80 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_QUIET=1
unset CI BUILD_NUMBER PYTEST_ADDOPTS PYTEST_PLUGINS PYTHONPATH PYTHONDONTWRITEBYTECODE "${!TFGRPO_@}" "${!FEATURE_TFGRPO_@}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pytest-tfgrpo
export PIP_CACHE_DIR=$cache/pip npm_config_cache=$cache/npm
artefacts=$root/out/artefacts # logs and screenshots; kept, and ignored by git
rm -rf -- "$artefacts"
mkdir -p "$artefacts"
closing=() times=()

# part NAME: what follows is timed as NAME, until the next part; an empty name ends the last one.
current='' began=0
part() {
    [ -z "$current" ] || times+=("$(printf '%5d s  %s' $((SECONDS - began)) "$current")")
    current=$1 began=$SECONDS
    [ -z "$current" ] || printf '\n== %s (at %d s)\n' "$current" "$began"
}

# fail WHAT: end with an error; where `go_on` is set, only once all other parts have run.
fail() {
    printf 'FAILED: %s\n' "$1" >&2
    [ -n "${go_on-}" ] || exit 1
    printf 'FAILED: %s\n' "$1" >>"$work/failed"
}

# expect CODE COMMAND...: the command ends with CODE; its output is in $work/log.
expect() {
    local wanted=$1 code=0 kept=$artefacts/failed-$SECONDS.log
    shift
    "$@" >"$work/log" 2>&1 </dev/null || code=$?
    [ "$code" = "$wanted" ] && return
    cp "$work/log" "$kept"
    # `head` would end `sed` by a signal, and with it this script, before it names what failed
    sed -n '/^=* FAILURES =*$/,/^=* tests coverage =*$/p' "$work/log" | sed -n 1,400p
    tail -n 150 "$work/log"
    fail "$* ended with $code instead of $wanted; the whole log is in ${kept#"$root/"}"
}

# tests TITLE COMMAND...: the command is a passing test run; its closing line is kept for the end.
tests() {
    local title=$1 line
    shift
    expect 0 "$@"
    tail -n 12 "$work/log"
    line=$(grep -E '[0-9]+ passed' "$work/log" | tail -n 1) || line='no test ran'
    closing+=("$title: $line")
}

# not_tested WHAT: say at the end that something could not be had here.
not_tested() {
    echo "NOT TESTED: $1"
    closing+=("NOT TESTED: $1")
}

# checkout FOLDER: a copy of the tree without what is ignored, as a fresh clone has it.
checkout() {
    mkdir -- "$1"
    (cd "$root" && tar -c --exclude-vcs --exclude-from=<(sed 's,/$,,' .gitignore) .) | tar -x -C "$1"
}

# venv FOLDER PYTHON WHAT...: an environment with WHAT installed.
venv() {
    local folder=$1 python=$2
    shift 2
    "$python" -m venv "$folder"
    "$folder/bin/pip" install "$@"
}

# provide COMMAND=PACKAGES...: install the Debian packages of commands that are missing.
provide() {
    local pair missing=()
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || read -ra missing <<<"${missing[*]} ${pair#*=}"
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# is_python PROGRAM VERSION: the program is an interpreter of that version.
is_python() {
    "$1" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])' "$2" 2>/dev/null
}

# python_of VERSION: print an interpreter of that version, from the path or from pyenv, if there is one.
python_of() {
    local found
    if is_python "python$1" "$1"; then
        command -v "python$1"
    elif found=$(pyenv prefix "$(pyenv latest "$1" 2>/dev/null)" 2>/dev/null)/bin/python3 && is_python "$found" "$1"; then
        echo "$found"
    fi
}

# readme N: command N of the README that sets up an environment: 0 runs the fixtures, 1 the project's tests.
mapfile -t commands < <(grep '^python3 -m venv \.venv && ' README.md)
[ ${#commands[@]} = 2 ] || fail 'README.md must have two commands that start with python3 -m venv .venv'
readme() {
    printf '$ %s\n' "${commands[$1]}"
    bash -c "${commands[$1]}"
}

# first_command PYTHON TITLE: the README's first command in a fresh checkout.
first_command() {
    local folder=$work/first-$2
    checkout "$folder"
    mkdir "$folder.bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$1")" >"$folder.bin/python3"
    chmod +x "$folder.bin/python3"
    cd "$folder"
    PATH=$folder.bin:$PATH tests "README, first command, $2" readme 0
    [ "$(find out -name report.html | wc -l)" = 1 ] || fail 'the first command left no report'
    cd "$root"
}

# lowest_versions: print the requirements of the package at their lowest versions.
lowest_versions() {
    python3 - <<'PYTHON'
import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["dependencies"], sep="\n")
PYTHON
}

# wheel: build sdist and wheel, as nobody who knows where the repository is, check them, and print the wheel's path.
wheel() {
    [ -d "$work/dist" ] || {
        env -u REPOSITORY_URL "$work/dev/bin/python" -m build --outdir "$work/dist" "$work/tree" &&
            "$work/dev/bin/python" -m twine check --strict "$work"/dist/*
    } >"$work/log" 2>&1 || { cat "$work/log" >&2; fail build; }
    echo "$work"/dist/*.whl
}

# smoke PYTHON TITLE: the wheel in a clean environment, outside the checkout, as a user tries it.
smoke() {
    local name place=$work/smoke-$2 before=$PATH
    venv "$place" "$1" "$(wheel)"
    PATH="$place/bin:$PATH"
    mkdir "$place/empty"
    cd "$place/empty"
    expect 0 tfgrpo init
    tests "wheel, $2" pytest --tfgrpo
    for name in journal.jsonl manifest.json metrics.jsonl per-epoch.json report.json report.html; do
        [ -s "$(echo out/empty/runs/*/"$name")" ] || fail "the wheel's run left no $name"
    done
    [ "$(find "$place"/lib -path '*/pytest_tfgrpo/*' -name '*-pytest-*.pyc' | wc -l)" -lt 15 ] ||
        fail "pytest rewrote the package's own modules"
    ! grep -nP '\]\((?!https?://)' "$place"/lib/python*/site-packages/pytest_tfgrpo-*.dist-info/METADATA ||
        fail 'a package index would show these dead links'
    expect 0 tfgrpo report
    expect 0 tfgrpo show e1.vocabulary-1.r0
    expect 0 tfgrpo stamp --check
    expect 0 python -c 'import pytest_tfgrpo as t; assert t.run(".", "fixtures", actor="offline").passed'
    expect 1 pytest                                     # without its lessons the agent does not solve everything
    expect 4 pytest --tfgrpo --tfgrpo-group-size=1      # a bad setting
    echo '{"id": 1}' >broken.scenario.json
    expect 2 pytest                                     # a bad scenario file
    grep -q 'broken.scenario.json:1: #/id' "$work/log" || fail 'the error does not name file, line and pointer'
    cd "$root"
    PATH=$before
}

# finish: print how each part ended and the seconds it took; end with an error if one failed.
finish() {
    part ''
    local how='all passed'
    [ ! -f "$work/failed" ] || how='not all passed'
    printf '\n== %s (at %d s)\n' "$how" "$SECONDS"
    printf '%s\n' "${closing[@]}" "${times[@]}"
    find "$artefacts" -type f | sed "s,^$root/,kept: ,"
    ! cat "$work/failed" 2>/dev/null
}
