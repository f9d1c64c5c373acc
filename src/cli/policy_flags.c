/* The policy flags (-p, --ro, --memory ...) that `pale run`, `pale explain` and `pale policy show`
 * share. They compile to the same model as a policy file. Input: the caller's own command line. */
#include "cli/options.h"

enum {
	FLAG_POLICY = CLI_POLICY_IDS,
	FLAG_RO,
	FLAG_RW,
	FLAG_OVERLAY,
	FLAG_HIDE,
	FLAG_ENV,
	FLAG_BEST_EFFORT,
	FLAG_SET,
	FLAG_SCALAR, /* and further: one a key */
};

const struct cli_option cli_policy_options[] = {
	{FLAG_POLICY, 'p', "policy", "FILE",
	 "load a policy: a file (YAML, or JSON if its name ends in .json), or the name of a "
	 "shipped one; "
	 "may be repeated",
	 "policy"},
	{FLAG_RO, 0, "ro", "PATH[:TARGET]", "show the host's PATH read-only, at TARGET if given",
	 "file"},
	{FLAG_RW, 0, "rw", "PATH[:TARGET][:SIZE]",
	 "a writable directory of at most SIZE, copied to the host's PATH at the end", "dir"},
	{FLAG_OVERLAY, 0, "overlay", "DIR[:TARGET]",
	 "the host's DIR, copy on write: changes are kept for pale diff and pale apply", "dir"},
	{FLAG_HIDE, 0, "hide", "PATH", "hide PATH, which lies in something shown", "file"},
	{FLAG_SCALAR, 0, "timeout", "TIME", "wall-clock time of the run"},
	{FLAG_SCALAR + 1, 0, "cpu-time", "TIME", "processor time of all processes together"},
	{FLAG_SCALAR + 2, 0, "cpus", "COUNT", "share of the processors"},
	{FLAG_SCALAR + 3, 0, "memory", "SIZE", "memory of the whole box"},
	{FLAG_SCALAR + 4, 0, "processes", "COUNT", "processes and threads at a time"},
	{FLAG_SCALAR + 5, 0, "disk", "SIZE", "all writable places together"},
	{FLAG_SCALAR + 6, 0, "output", "SIZE", "output kept of stdout and stderr each"},
	{FLAG_SCALAR + 7, 0, "profile", "NAME", "system calls: default, strict or nested",
	 "default|strict|nested"},
	{FLAG_ENV, 0, "env", "NAME[=VALUE]",
	 "set a variable; NAME alone copies the caller's value"},
	{FLAG_BEST_EFFORT, 0, "best-effort", "ITEM", "a restriction that may be weaker than asked"},
	{FLAG_SET, 0, "set", "KEY=VALUE", "set any key of the policy: --set limits.inodes=1000"},
	{0},
};
