#!/bin/sh
# A native program that does the harm it is asked to, and looks for what is left of earlier harm.

answer() { echo "$1" >&3; }

look() {
  processes=0
  for command in /proc/[0-9]*/cmdline; do
    if tr '\0' ' ' <"$command" 2>/dev/null | grep -q sleep; then processes=$((processes + 1)); fi
  done
  files=$(find /tmp /dev/shm -mindepth 1 2>/dev/null | wc -l)
  answer "{\"environment\":0,\"files\":$files,\"processes\":$processes}"
}

bomb() { bomb | bomb & }

memory() {
  hog=xxxxxxxx
  while :; do hog=$hog$hog; done
}

repeat() { head -c "$1" /dev/zero | tr '\0' "$2"; }

children() {
  touch /tmp/left /dev/shm/left
  (sleep 1000 & sleep 1000) </dev/null >/dev/null 2>&1 3>&- &
  answer '{"ok":true}'
}

while read -r line; do
  case $line in
  *'"do":"look"'*) look ;;
  *'"do":"loop"'*) while :; do :; done ;;
  *'"do":"memory"'*) memory ;;
  *'"do":"fork"'*) bomb; while :; do :; done ;;
  *'"do":"disk"'*) cat /dev/zero >/tmp/full ;;
  *'"do":"flood"'*) repeat 3000000 x | fold -w 100; answer '{"ok":true}' ;;
  *'"do":"signal"'*) kill -SEGV $$ ;;
  *'"do":"exit"'*) exit 3 ;;
  *'"do":"close"'*) exec 0<&- 1>&- 2>&- 3>&-; exit 4 ;;
  *'"do":"noise"'*) repeat 4096 '\377' >&3; answer '' ;;
  *'"do":"number"'*) answer 3 ;;
  *'"do":"no JSON"'*) answer '{"a":' ;;
  *'"do":"long"'*) answer "{\"x\":\"$(repeat 7340032 y)\"}" ;;
  *'"do":"deep"'*) answer "{\"x\":$(repeat 600 '[')$(repeat 600 ']')}" ;;
  *'"do":"children"'*) children ;;
  *) answer '{"ok":true}' ;;
  esac
done
