#!/bin/sh
# Prints the option that has cargo build these features in where this machine has what they take, and else says what is
# missing: kernel-features.sh "FEATURE..." PROGRAM=PACKAGE... /PATH=PACKAGE...
set -eu

features=$1
shift
missing=
for pair in "$@"; do
  wanted=${pair%%=*}
  command -v "$wanted" >/dev/null 2>&1 || { [ "${wanted#/}" != "$wanted" ] && [ -e "$wanted" ]; } ||
    missing="$missing ${pair#*=}"
done
if [ -z "$missing" ]; then
  echo "--features $(echo "$features" | tr ' ' ,)"
else
  echo "built without the gate in the kernel (\`flashweir run --kernel\`, \`flashweir router\`); it takes:$missing" >&2
fi
