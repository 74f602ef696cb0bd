# The one option of the scripts that install, `--quiet`. Sourced with the words of the command line; sets
# `quiet` to `yes` or to nothing.
quiet=
for word in "$@"; do
  case $word in
    --quiet) quiet=yes ;;
    *) echo "error: \`$word\` is no option; allowed: --quiet" >&2; exit 2 ;;
  esac
done
