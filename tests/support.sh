# Shared by the scripts of this folder; sourced, never run. It starts programs on free ports
# in a folder of their own, and ends them with the script that started them.

# A shell's own settings must not reach what is tested.
for name in "${!RINGONCE@}" "${!LIVEKIT@}"; do
    unset "$name"
done

# Where cargo puts the binary.
ringonce="${CARGO_TARGET_DIR:-$PWD/target}/release/ringonce"

# Everything that a run writes; gone with it.
scratch=$(mktemp -d)
started=()

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
    "$@" >"$scratch/$name.out" 2>"$log" &
    local pid=$!
    started+=("$pid")
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
