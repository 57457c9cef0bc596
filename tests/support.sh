# Shared by the scripts of this folder; sourced from the root of the repository, never run. It
# starts programs on free ports in a folder of their own, and ends them with the script that
# started them.

# The program that is tried: where cargo puts it, or RINGONCE_BIN, which is then not built.
ringonce_bin=${RINGONCE_BIN:-}
ringonce=${ringonce_bin:-${CARGO_TARGET_DIR:-$PWD/target}/release/ringonce}

# A shell's own settings must not reach what is tested.
for name in "${!RINGONCE@}" "${!LIVEKIT@}"; do
    unset "$name"
done

# What the tools of the tests are put into, once.
tools=${CARGO_TARGET_DIR:-$PWD/target}/clients

build() {
    [[ -n $ringonce_bin ]] || cargo build --release --locked "$@"
}

# Everything that a run writes; gone with it.
scratch=$(mktemp -d)
started=()
declare -A pids

end_all() {
    local pid
    # The last one started is ended first: a service before its platform.
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        pid=${started[i]}
        kill "$pid" 2>/dev/null || true
        # A drain has its own limit; this is for a program that ignores SIGTERM.
        for ((tick = 0; tick < 200; tick++)); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME KEY COMMAND…: starts it in the background, its stderr in $scratch/NAME.log, and
# waits until its ready line there names the address KEY, which is left in $address.
start() {
    local name=$1 key=$2 log="$scratch/$1.log"
    shift 2
    # It is read below, maybe before the program has begun.
    : >"$log"
    "$@" >"$scratch/$name.out" 2>"$log" &
    local pid=$!
    started+=("$pid")
    pids[$name]=$pid
    for ((tick = 0; tick < 300; tick++)); do
        address=$(sed -n "s/^{.*\"$key\":\"\([^\"]*\)\".*\"\(ready\|store\)\".*/\1/p" "$log" | head -n 1)
        [[ -n $address ]] && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "$name is not ready; it said:" >&2
    cat "$log" >&2
    return 1
}

# free_port: prints a port of this host on which nobody listens just now.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# stop NAME SIGNAL: ends what was started by that name, and waits until it is gone.
stop() {
    kill "-$2" "${pids[$1]}"
    # Bash tells of a job that died by a signal; it was ours.
    wait "${pids[$1]}" 2>/dev/null || true
}

# await FILE WORDS: waits until WORDS are in the file, at most 30 s.
await() {
    for ((tick = 0; tick < 300; tick++)); do
        grep -qsF -- "$2" "$1" && return
        sleep 0.1
    done
    echo "waited in vain for '$2'; $1 has:" >&2
    cat "$1" >&2
    return 1
}

# need_grpcurl: puts grpcurl, a gRPC client for the command line, on the PATH. The first time
# it is compiled, which takes a minute or two.
need_grpcurl() {
    local version=v1.9.3
    local folder=$tools/grpcurl-$version
    if [[ ! -x $folder/grpcurl ]]; then
        if ! command -v go >/dev/null; then
            echo "go is missing, by which grpcurl is installed: get it from https://go.dev/dl" >&2
            return 1
        fi
        echo "installing grpcurl $version"
        GOBIN=$folder go install -ldflags '-s -w' "github.com/fullstorydev/grpcurl/cmd/grpcurl@$version"
    fi
    PATH=$folder:$PATH
}

# need_python: makes the Python that the examples run with, anew where the packages that they
# need have changed, and the modules of the proto; its path is left in $python.
need_python() {
    local wanted=tests/clients/requirements.txt
    python=$tools/venv/bin/python
    if ! cmp -s "$wanted" "$tools/venv/installed.txt"; then
        if ! command -v python3 >/dev/null; then
            echo "python3 is missing: install Python 3.10 or newer" >&2
            return 1
        fi
        # Debian keeps a part of the module venv in a package of its own.
        if ! python3 -c 'import ensurepip' 2>/dev/null; then
            if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
                echo "python3 has no ensurepip: install your system's package python3-venv" >&2
                return 1
            fi
            apt-get -qq update && apt-get -qq install --yes python3-venv >/dev/null
        fi
        echo "installing the packages of $wanted"
        python3 -m venv --clear "$tools/venv"
        "$python" -m pip install --quiet --no-compile --disable-pip-version-check \
            --only-binary :all: --requirement "$wanted"
        cp "$wanted" "$tools/venv/installed.txt"
    fi
    # Gone first, so that a message which left the proto is not found any more.
    rm -rf "$tools/proto"
    mkdir -p "$tools/proto"
    "$python" -m grpc_tools.protoc --proto_path=proto --python_out="$tools/proto" \
        --grpc_python_out="$tools/proto" proto/ringonce/v1/*.proto
    # What Python compiles is not to lie about among the sources.
    export PYTHONPATH=$tools/proto PYTHONPYCACHEPREFIX=$tools/pycache
}

# http_get HOST:PORT PATH: the answer, head and body; the shell is client enough.
http_get() {
    exec 9<>"/dev/tcp/${1%:*}/${1##*:}"
    printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$2" "$1" >&9
    cat <&9
    exec 9>&-
}

# sip_calls HOST:PORT ATTEMPT: how many SIP calls the sandbox counted for that attempt.
sip_calls() {
    http_get "$1" /sandbox/state | grep -o '"sip_calls":\[[^]]*\]' | grep -o '{[^}]*}' |
        sed -n "s/.*\"attempt\":\"$2\".*\"count\":\([0-9]*\).*/\1/p"
}
