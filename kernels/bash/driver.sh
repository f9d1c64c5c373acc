# shellcheck shell=bash disable=SC2154
# What bash runs first in a session (kernels/host/bash.c), before any code of the user's.
#
# Interactive it is only so that an interrupt comes back to the top level: no history, nothing
# expanded in it, no prompts, nothing run between the commands.
set +o history +H
unset HISTFILE MAILCHECK PROMPT_COMMAND PS0
PS1='' PS2=''

# The streams of executions came as 5, 6 and 7. As copies that no program inherits: bash keeps what a
# redirection puts aside close-on-exec, and a copy of such a descriptor, too.
pale_streams=''
\builtin eval '\builtin exec {pale_in}<&10 {pale_out}>&11 {pale_err}>&12' 5</dev/null 6>/dev/null 7>/dev/null &&
	pale_streams="$pale_in $pale_out $pale_err" && exec 5<&- 6>&- 7>&-
: "${pale_streams:=5 6 7}"
unset pale_in pale_out pale_err
