/* The options table: see options.h. Runs wherever a policy is read, with the caller's rights; the
 * texts may be hostile. */
#include "policy/options.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/rules.h"

static bool valid_user(const char *s)
{
	/* `nobody` is the name of what belongs to no user of the box. */
	if (((*s < 'a' || *s > 'z') && *s != '_') || strcmp(s, "nobody") == 0)
		return false;
	return strlen(s) <= 31 && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bool valid_image(const char *s)
{
	return strcmp(s, "host") == 0 || (*s == '/' && s[1]);
}

static const struct option_word isolation_words[] = {
	{"process", 0, "namespaces, seccomp, Landlock and cgroups of this kernel"},
	{0},
};
static const struct option_word access_words[] = {
	{"hide", ACCESS_HIDE, "a path inside another entry that must not be seen"},
	{"read", ACCESS_READ, "a read-only view of the host's file or directory"},
	{"overlay", ACCESS_OVERLAY,
	 "copy on write: the host's directory stays as it is, the changes are kept for `pale diff` "
	 "and `pale apply`"},
	{"write", ACCESS_WRITE, "a fresh, empty, writable directory"},
	{0},
};
static const struct option_word profile_words[] = {
	{"strict", PROFILE_STRICT, "what computing needs, and no more"},
	{"default", PROFILE_DEFAULT, "what ordinary programs need: compilers, interpreters, git"},
	{"nested", PROFILE_NESTED, "also user namespaces and mounts, for a sandbox in the box"},
	{0},
};
static const struct option_word speculation_words[] = {
	{"strict", SPECULATION_STRICT,
	 "store bypass and indirect branch speculation are off for the whole box, for good, and "
	 "the "
	 "kernel has the processor forget its branches at each change to or from the box; programs "
	 "are slower by it"},
	{"default", SPECULATION_DEFAULT, "as the host does for every process"},
	{0},
};
static const struct option_word kernel_words[] = {
	{"python", KERNEL_PYTHON, "Python, with a small driver of Pale's"},
	{"node", KERNEL_NODE, "Node.js (18 or later)"},
	{"bash", KERNEL_BASH, "bash"},
	{"ipython", KERNEL_IPYTHON,
	 "Jupyter's ipykernel, which the interpreter has to have: magics, rich output, widgets; "
	 "without rollback"},
	{0},
};
static const struct option_word watch_words[] = {
	{"all", WATCH_ALL, "every open that was refused"},
	{"writes", WATCH_WRITES, "opens for writing that were refused"},
	{"off", WATCH_OFF, "only what the kernel reports by itself"},
	{0},
};
static const struct option_word item_words[] = {
	{"cpus", ITEM_CPUS, "the share of the processors"},
	{"cpu", ITEM_CPU, "the limit on processor time"},
	{"memory", ITEM_MEMORY, "the limit on memory"},
	{"processes", ITEM_PROCESSES, "the limit on processes"},
	{"landlock", ITEM_LANDLOCK, "the second lock on files, where the kernel has none"},
	{"events", ITEM_EVENTS, "events of denied calls and blocked network attempts"},
	{"speculation", ITEM_SPECULATION,
	 "kernel.speculation: strict, where the processor lacks a control"},
	{"l1d_flush", ITEM_L1D_FLUSH, "kernel.l1d_flush"},
	{"core_scheduling", ITEM_CORE_SCHEDULING, "kernel.core_scheduling"},
	{0},
};
static const struct option_word protocol_words[] = {
	{"tls", NETWORK_TLS, "TLS for the name that the rule says: https and the like"},
	{"http", NETWORK_HTTP, "HTTP/1 in clear; each request is checked"},
	{"tcp", NETWORK_TCP, "any bytes: ssh, databases; nothing of the content is checked"},
	{"udp", NETWORK_UDP, "datagrams, for single hosts"},
	{0},
};

/* The name of a Python module: identifiers, dots between them. */
static int import_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	bool begins = true;
	size_t len = strlen(text);

	for (const char *c = text; *c; c++) {
		bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
		bool digit = *c >= '0' && *c <= '9';

		if (begins ? !letter : !letter && !digit && *c != '.')
			return -EINVAL;
		begins = *c == '.';
	}
	if (begins || len >= OPTION_TEXT_MAX)
		return -EINVAL;
	memcpy(ret, text, len + 1);
	return 0;
}

#define P(member) offsetof(struct policy, member)
#define F(member) offsetof(struct policy_file, member)
#define R(member) offsetof(struct rule_row, member)
#define S(member) offsetof(struct secret_row, member)
#define L(member) offsetof(struct publish_row, member)

/* A host, maybe with "*." before it; in any case, as people write it. */
#define HOST_PATTERN                                                                   \
	"^(\\*\\.)?([A-Za-z0-9_-]{1,63}\\.)*(?![0-9]+\\.?$)(?!0[xX][0-9A-Fa-f]*\\.?$)" \
	"[A-Za-z0-9_-]{1,63}\\.?$"
#define HOST_SINGLE                                                           \
	"^([A-Za-z0-9_-]{1,63}\\.)*(?![0-9]+\\.?$)(?!0[xX][0-9A-Fa-f]*\\.?$)" \
	"[A-Za-z0-9_-]{1,63}\\.?$"
#define HOST_ROW     .pattern = HOST_PATTERN, .normal = rule_host_normal, .hint = rule_host_hint
#define PORT_PATTERN "^[0-9]{1,5}(-[0-9]{1,5})?$"

/* clang-format off */
const struct policy_option policy_options[] = {
	{.key = "pale", .type = OPTION_VERSION, .def = "1",
	 .doc = "The format of the policy: always 1. Must be there, so that a policy is never taken "
		"for one of another format.",
	 .example = "pale: 1", .also = "version apiVersion"},
	{.key = "isolation", .type = OPTION_TEXT, .offset = P(isolation), .def = "process",
	 .words = isolation_words, .widens = WIDENS_CHANGE,
	 .doc = "What makes the box. A list is an order of preference: the first that this host can "
		"do is taken.",
	 .example = "isolation: process", .also = "backend runtime"},
	{.key = "image", .type = OPTION_TEXT, .offset = P(image), .def = "host",
	 .pattern = "^(host|/.+)$", .valid = valid_image, .widens = WIDENS_CHANGE,
	 .expected = "`host` or the absolute path of a directory that holds a root file system",
	 .doc = "Where programs come from: the host's /usr, read-only, or a directory that holds a "
		"root file system, of which /usr is taken.",
	 .example = "image: host", .also = "rootfs root"},
	{.key = "user", .type = OPTION_TEXT, .offset = P(user), .def = "agent",
	 .pattern = "^(?!nobody$)[a-z_][a-z0-9_-]{0,30}$", .valid = valid_user, .widens = WIDENS_CHANGE,
	 .expected = "a user name, other than nobody: lower-case letters, digits, `_` and `-`, at most "
		     "31",
	 .doc = "The user's name inside. `root` is root of the box's own user namespace only, "
		"without capabilities.",
	 .example = "user: agent", .also = "username uid"},

	{.key = "files", .type = OPTION_LIST, .list = &list_files,
	 .expected = "a list of entries, [{path: ..., access: ...}]",
	 .doc = "What of the host is there, besides the host's programs in /usr, and what is "
		"writable, besides HOME and /tmp. Nothing else of the host's files is there. Entries "
		"may lie in one another, in any order.",
	 .example = "files:\n  - {path: /data/sales.xlsx, from: ./sales.xlsx, access: read}\n"
		    "  - {path: /out, access: write, size: 64MiB, collect: ./out}\n"
		    "  - {path: ., access: overlay}\n  - {path: ./.env, access: hide}",
	 .also = "mounts filesystem fs paths volumes"},
	{.key = "files[].path", .type = OPTION_PATH, .offset = F(path),
	 .doc = "Where it is in the box. A relative path means the same absolute path as on the "
		"host, counted from the policy's directory; left out, it is that of `from`, or of "
		"`collect`.",
	 .also = "target destination dest to mount"},
	{.key = "files[].from", .type = OPTION_PATH, .offset = F(from),
	 .doc = "The file or directory on the host (`read` and `overlay`); relative to the policy's "
		"directory. Left out, it is `path`. It must exist.",
	 .also = "source src host"},
	{.key = "files[].access", .type = OPTION_WORD, .offset = F(access), .def = "read",
	 .words = access_words, .doc = "What the code may do there.", .also = "mode permission type"},
	{.key = "files[].size", .type = OPTION_SIZE, .offset = F(size_bytes), .min = "64KiB",
	 .max = "16TiB",
	 .doc = "`write` only: what fits in. Left out, the directory shares limits.disk with HOME "
		"and /tmp.",
	 .also = "limit max quota"},
	{.key = "files[].collect", .type = OPTION_PATH, .offset = F(collect),
	 .doc = "`write` only: the host's directory to which the contents are copied when the run "
		"has ended; relative to the policy's directory.",
	 .also = "copy_to save output"},

	{.key = "limits", .type = OPTION_GROUP,
	 .doc = "Each of them is always in force; there is no `unlimited`. When one is hit, the "
		"result names it, with the figures.",
	 .example = "limits: {wall: 2m, memory: 1GiB, cpus: 0.5}", .also = "resources limit"},
	{.key = "limits.wall", .type = OPTION_TIME, .offset = P(limits.wall_ms), .def = "30s",
	 .min = "10ms", .max = "1000h", .widens = WIDENS_MORE, .flag = "timeout",
	 .doc = "Wall-clock time of the run; at its end the box is destroyed.",
	 .example = "limits: {wall: 10m}", .also = "timeout time walltime duration deadline"},
	{.key = "limits.cpu", .type = OPTION_TIME, .offset = P(limits.cpu_ms), .def = "30s",
	 .min = "10ms", .max = "10000h", .widens = WIDENS_MORE, .item = ITEM_CPU, .flag = "cpu-time",
	 .doc = "Processor time of all processes together, with what the broker of its network uses for "
	 "it; at its end the box is destroyed.",
	 .example = "limits: {cpu: 1m}", .also = "cpu_time cputime cpu-time"},
	{.key = "limits.cpus", .type = OPTION_MILLI, .offset = P(limits.cpus_milli), .def = "1",
	 .min = "0.01", .max = "4096", .widens = WIDENS_MORE, .item = ITEM_CPUS, .flag = "cpus",
	 .doc = "Processors that may be busy at a time; fractions are shares of one. The code sees "
		"as many. While others want them too, a box that keeps them busy gets less than those "
		"that do not.",
	 .example = "limits: {cpus: 1.5}", .also = "cores nproc cpu_count"},
	{.key = "limits.memory", .type = OPTION_SIZE, .offset = P(limits.memory_bytes),
	 .def = "512MiB", .min = "4MiB", .max = "64TiB", .widens = WIDENS_MORE, .item = ITEM_MEMORY,
	 .flag = "memory",
	 .doc = "Memory of the whole box, what it wrote to memory-backed directories included; "
		"there is no swap.",
	 .example = "limits: {memory: 2GiB}", .also = "mem ram memory_mb"},
	{.key = "limits.processes", .type = OPTION_COUNT, .offset = P(limits.processes),
	 .def = "128", .min = "1", .max = "4194304", .widens = WIDENS_MORE, .item = ITEM_PROCESSES,
	 .flag = "processes", .doc = "Processes and threads at a time.",
	 .example = "limits: {processes: 64}", .also = "pids nproc procs threads max_processes"},
	{.key = "limits.open_files", .type = OPTION_COUNT, .offset = P(limits.open_files),
	 .def = "1024", .min = "16", .max = "1048576", .widens = WIDENS_MORE,
	 .doc = "Open files of one process.", .example = "limits: {open_files: 256}",
	 .also = "nofile fds openfiles files descriptors"},
	{.key = "limits.file_size", .type = OPTION_SIZE, .offset = P(limits.file_size_bytes),
	 .def = "256MiB", .min = "4KiB", .max = "16TiB", .widens = WIDENS_MORE,
	 .doc = "The largest file that can be written.", .example = "limits: {file_size: 16MiB}",
	 .also = "fsize filesize max_file_size"},
	{.key = "limits.disk", .type = OPTION_SIZE, .offset = P(limits.disk_bytes), .def = "256MiB",
	 .min = "1MiB", .max = "16TiB", .widens = WIDENS_MORE, .flag = "disk",
	 .doc = "All writable places together: HOME, /tmp, /dev/shm, the changes of overlays, and "
		"`write` entries without a size of their own.",
	 .example = "limits: {disk: 1GiB}", .also = "storage space tmp disk_size"},
	{.key = "limits.inodes", .type = OPTION_COUNT, .offset = P(limits.inodes), .def = "65536",
	 .min = "256", .max = "1000000000", .widens = WIDENS_MORE,
	 .doc = "Files and directories in all writable places together.",
	 .example = "limits: {inodes: 10000}", .also = "nr_inodes file_count"},
	{.key = "limits.output", .type = OPTION_SIZE, .offset = P(limits.output_bytes),
	 .def = "1MiB", .min = "1KiB", .max = "1GiB", .widens = WIDENS_MORE, .flag = "output",
	 .doc = "What is kept of standard output and standard error each, for the result: half from "
		"the head, half from the tail, where the errors are.",
	 .example = "limits: {output: 64KiB}", .also = "stdout output_size"},
	{.key = "limits.output_total", .type = OPTION_SIZE, .offset = P(limits.output_total_bytes),
	 .def = "64MiB", .min = "1KiB", .max = "16TiB", .widens = WIDENS_MORE,
	 .doc = "Output of the whole run; at this many bytes it is ended.",
	 .example = "limits: {output_total: 1GiB}", .also = "max_output total_output"},

	{.key = "network", .type = OPTION_GROUP,
	 .doc = "Which hosts the code can reach. Without a rule that allows there is no network but "
		"loopback.",
	 .example = "network:\n  allow:\n    - {preset: pypi}\n"
		    "    - {host: api.example.com, methods: [GET], paths: [\"/v1/**\"]}\n"
		    "  deny:\n    - {host: \"*.internal.example.com\", reason: not from here}",
	 .also = "net egress internet"},
	{.key = "network.allow", .type = OPTION_LIST, .list = &list_allow,
	 .expected = "a list of rules, [{host: ..., port: ...}]",
	 .doc = "What is allowed: a connection that one of these rules covers and none of `deny` does. "
		"Names are resolved outside, and only the addresses found there are reached; private "
		"and local ones are not, unless `address` names them.",
	 .example = "network:\n  allow:\n  - {preset: pypi}\n"
		    "  - {host: api.example.com, methods: [GET, HEAD], paths: [\"/v1/**\"]}\n"
		    "  - {host: \"*.example.org\", ports: [80, 443]}\n"
		    "  - {host: github.com, port: 22, protocol: tcp}\n"
		    "  - {host: db.example.com, address: 10.1.0.0/16, port: 5432, protocol: tcp}",
	 .also = "rules hosts domains allowed allowlist whitelist allowed_domains allowed_hosts"},
	{.key = "network.allow[].host", .type = OPTION_TEXT, .offset = R(host), HOST_ROW,
	 .expected = "a host name, `*.` before it for all names below it",
	 .doc = "The name: exact, or `*.example.com`, which covers every name below example.com but "
		"not example.com itself.",
	 .also = "name domain hostname"},
	{.key = "network.allow[].address", .type = OPTION_TEXT, .offset = R(address),
	 .normal = rule_address_normal, .pattern = "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$",
	 .expected = "an address such as 192.0.2.1 or 2001:db8::1, or a range such as 10.1.0.0/16 (no "
		     "bits set behind the prefix)",
	 .doc = "An address or range that is reached without a name. With `host` it says where the "
		"name's addresses have to lie, and then they may be private ones. A range that is "
		"not private as a whole, such as 0.0.0.0/0, reaches public addresses only; an "
		"address of the host's own has to be named by itself.",
	 .also = "ip cidr addr addresses range"},
	{.key = "network.allow[].port", .type = OPTION_TEXT, .offset = R(port), .numbers = true,
	 .pattern = PORT_PATTERN, .normal = rule_ports_normal,
	 .expected = "a port such as 443, or a range such as 8000-8010",
	 .doc = "The port, or a range of them. Left out, it is 443 (80 with `protocol: http`; it "
		"has to be said for tcp and udp); in a rule that denies, every port.",
	 .also = "dport"},
	{.key = "network.allow[].ports", .type = OPTION_TEXTS, .offset = R(ports), .numbers = true,
	 .pattern = PORT_PATTERN, .normal = rule_ports_normal,
	 .expected = "a port such as 443, a range such as 8000-8010, or a list of these",
	 .doc = "Several ports, instead of `port`.", .also = "dports"},
	{.key = "network.allow[].protocol", .type = OPTION_WORDS, .offset = R(protocols),
	 .words = protocol_words, .single = true,
	 .doc = "What may be spoken there. Left out, it is tls for port 443, http for 80 and tcp for "
		"22, and has to be said for other ports; in a rule that denies, all of them.",
	 .also = "proto protocols scheme"},
	{.key = "network.allow[].methods", .type = OPTION_TEXTS, .offset = R(methods),
	 .pattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}$", .normal = rule_method_normal,
	 .expected = "an HTTP method such as GET, or a list of them",
	 .doc = "Only requests with these methods. TLS is then opened (`intercept`).",
	 .also = "method verbs"},
	{.key = "network.allow[].paths", .type = OPTION_TEXTS, .offset = R(paths),
	 .pattern = "^(/|\\*\\*)[^ ?#]*$", .normal = rule_path_normal,
	 .expected = "a path that begins with `/`, in which `*` stands for anything but `/` and `**` "
		     "for anything; without `..`, `//`, `;`, query, and encoded slashes or stars",
	 .doc = "Only requests for these paths, without the query: `*` stands for anything but `/`, "
		"`**` for anything; `%20` is a blank. TLS is then opened (`intercept`). Paths that servers read in "
		"different ways (`..`, `//`, `;`, encoded slashes) are refused for a host whose rules "
		"have paths.",
	 .also = "path urls url prefix prefixes"},
	{.key = "network.allow[].intercept", .type = OPTION_BOOL, .offset = R(intercept),
	 .doc = "TLS is opened by Pale, with a certificate that programs inside trust, so that each "
		"request is checked and logged; `methods`, `paths` and secrets imply it. Without it, "
		"what is asked of a server within TLS is not seen: also not if it is asked for "
		"another name that the same server answers for.",
	 .also = "mitm inspect decrypt tls_inspect"},
	{.key = "network.allow[].rate", .type = OPTION_SIZE, .offset = R(rate_bytes), .min = "1KiB",
	 .max = "1TiB", .doc = "At most so many bytes a second, both ways together, for this rule.",
	 .also = "bandwidth speed"},
	{.key = "network.allow[].bytes", .type = OPTION_SIZE, .offset = R(total_bytes), .min = "1KiB",
	 .max = "1024TiB",
	 .doc = "At most so many bytes in the whole run, both ways together, for this rule.",
	 .also = "limit max size total quota"},
	{.key = "network.allow[].reason", .type = OPTION_TEXT, .offset = R(reason),
	 .expected = "a text of at most 255 bytes",
	 .doc = "Shown to a program that is refused because of this rule: what to use instead.",
	 .also = "message comment why note"},
	{.key = "network.allow[].preset", .type = OPTION_TEXT, .offset = R(preset),
	 .expected = "the name of a preset, or the path of its file",
	 .doc = "Instead of a host: the rules of a preset (`pale policy presets`), which `methods`, "
		"`paths`, `intercept`, `rate`, `bytes` and `reason` apply to. With a host, only the "
		"name of the preset that the rule came from.",
	 .also = "use group include template"},
	{.key = "network.deny", .type = OPTION_LIST, .list = &list_deny,
	 .expected = "a list of rules, [{host: ..., reason: ...}]",
	 .doc = "What is refused even if a rule of `allow` covers it. Its entries have the keys of "
		"`allow` but `intercept`, `rate`, `bytes` and `preset`. What an entry leaves out is "
		"not restricted: `{host: a.example.com}` alone refuses every port and protocol.",
	 .example = "network:\n  deny:\n"
		    "  - {host: \"*.internal.example.com\", reason: \"use api.example.com\"}\n"
		    "  - {host: api.example.com, methods: [DELETE]}",
	 .also = "block blocked blocklist denied blacklist denied_domains"},
	{.key = "network.secrets", .type = OPTION_LIST, .list = &list_secrets,
	 .expected = "a list of entries, [{env: ..., value_from: ..., hosts: ...}]",
	 .doc = "Secrets that the code uses and never holds: it has a placeholder, which is replaced "
		"on the way out, in one place of requests to the named hosts only. TLS to these is "
		"opened (`intercept`).",
	 .example = "network:\n  secrets:\n  - {env: API_KEY, value_from: \"env:REAL_KEY\", "
		    "hosts: [api.example.com], header: authorization}",
	 .also = "credentials tokens keys"},
	{.key = "network.secrets[].env", .type = OPTION_TEXT, .offset = S(env),
	 .pattern = "^(?!PALE_)[A-Za-z_][A-Za-z0-9_]*$", .valid = secret_env_valid,
	 .expected = "a variable's name: letters, digits and _, no digit first, not beginning with "
		     "PALE_",
	 .doc = "The variable in the box that holds the placeholder.", .also = "name variable"},
	{.key = "network.secrets[].file", .type = OPTION_PATH, .offset = S(file),
	 .doc = "The file in the box that holds it, read-only; an absolute path.", .also = "path"},
	{.key = "network.secrets[].value_from", .type = OPTION_PATH, .offset = S(value_from),
	 .valid = secret_source_valid, .hidden = true,
	 .expected = "env:NAME, file:PATH, command:SHELL LINE or fd:N (never the value itself)",
	 .doc = "Where the value is read from, on the host: `env:NAME` the caller's variable, "
		"`file:PATH` a file's first line, `command:LINE` the output of a shell line, `fd:N` "
		"an open descriptor of the caller.",
	 .also = "value from source secret"},
	{.key = "network.secrets[].hosts", .type = OPTION_TEXTS, .offset = S(hosts), HOST_ROW,
	 .expected = "a host name, or a list of them",
	 .doc = "The hosts that may be sent it. Each has to be allowed by a rule.",
	 .also = "host domains domain"},
	{.key = "network.secrets[].header", .type = OPTION_TEXT, .offset = S(header),
	 .pattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$", .normal = secret_header_normal,
	 .expected = "the name of a header, other than those that frame a message (host, "
		     "content-length ...)",
	 .doc = "The header in which the placeholder is replaced, wherever in its value it stands.",
	 .also = "headers"},
	{.key = "network.secrets[].query", .type = OPTION_TEXT, .offset = S(query),
	 .pattern = "^[A-Za-z0-9._~\\[\\]-]+$", .valid = secret_query_valid,
	 .expected = "the name of a query field",
	 .doc = "Or the field of the query in which it is replaced.",
	 .also = "param parameter field"},
	{.key = "network.secrets[].basic", .type = OPTION_BOOL, .offset = S(basic),
	 .doc = "Or `true`: user or password of HTTP's basic authentication.",
	 .also = "basic_auth auth password"},
	{.key = "network.publish", .type = OPTION_LIST, .list = &list_publish,
	 .expected = "a list of entries, [{port: 8080}]",
	 .doc = "Servers in the box that programs of the host can reach, at a port of the host's "
		"loopback or a Unix socket. Each connection is in the audit log. Nothing else comes in, "
		"and nothing gets out by it.",
	 .example = "network:\n  publish:\n  - {port: 8080}\n  - {port: 8080, host_port: 8080}\n"
		    "  - {port: 5000, path: /run/user/1000/app.sock}",
	 .also = "ports expose inbound forward listen"},
	{.key = "network.publish[].port", .type = OPTION_COUNT, .offset = L(port), .min = "1",
	 .max = "65535",
	 .doc = "The port in the box, on which the server listens: on loopback (127.0.0.1 or ::1) or "
		"every address. A connection that comes before it listens is refused.",
	 .also = "container_port guest_port target"},
	{.key = "network.publish[].host_port", .type = OPTION_COUNT, .offset = L(host_port),
	 .min = "0", .max = "65535",
	 .doc = "The port on the host, of 127.0.0.1 and ::1. Left out, or 0, it is any free one, "
		"which is told on standard error when the box starts, and in the result. Every user "
		"of the host can connect to it.",
	 .also = "host published listen"},
	{.key = "network.publish[].path", .type = OPTION_PATH, .offset = L(path),
	 .doc = "Instead of a port: a Unix socket on the host that is made for the run, with mode "
		"0600; relative to the policy's directory. No part of the path may be a symbolic "
		"link, and it may not lie where the box's changes or results are written.",
	 .also = "socket unix sock"},
	{.key = "network.ssh_agent", .type = OPTION_GROUP,
	 .doc = "Lets the code use the caller's ssh agent (SSH_AUTH_SOCK) to log in at some hosts, "
		"without holding a key. Each signature that it asks for is in the audit log.",
	 .example = "network:\n  allow: [{host: github.com, port: 22}]\n"
		    "  ssh_agent: {hosts: [github.com]}",
	 .also = "agent ssh_auth_sock ssh"},
	{.key = "network.ssh_agent.hosts", .type = OPTION_TEXTS,
	 .offset = P(network.ssh_agent_hosts), .flag = "ssh-agent", .widens = WIDENS_CHANGE,
	 .pattern = HOST_SINGLE, .normal = rule_single_host_normal, .hint = rule_host_hint,
	 .expected = "a host name, or a list of them",
	 .doc = "The hosts at which the caller's ssh agent may log the code in; a signature is given "
		"for nothing else. Each has to be allowed as tcp, and has to have a key in the "
		"caller's known_hosts, by which the agent's answer is tied to it. The box sees those "
		"keys in /etc/ssh/ssh_known_hosts.",
	 .example = "network:\n  ssh_agent:\n    hosts: [github.com]",
	 .also = "host domains allow"},
	{.key = "network.exempt", .type = OPTION_TEXTS, .offset = P(network.exempt), HOST_ROW,
	 .widens = WIDENS_CHANGE, .expected = "a host name, or a list of them",
	 .doc = "Hosts whose TLS is never opened, because their clients insist on a certificate or "
		"bring one. No rule with methods or paths, and no secret, may be for them.",
	 .example = "network:\n  exempt: [pinned.example.com]", .also = "exclude bypass passthrough"},
	{.key = "network.extra_ca", .type = OPTION_PATHS, .offset = P(network.extra_ca),
	 .widens = WIDENS_CHANGE,
	 .doc = "Files with certificates (PEM) that servers may be verified with, besides the host's "
		"trust store, where TLS is opened.",
	 .example = "network:\n  extra_ca: [/etc/ssl/certs/example-ca.pem]",
	 .also = "ca cafile cacert ca_bundle certificates"},
	{.key = "network.rate", .type = OPTION_SIZE, .offset = P(network.rate_bytes), .min = "1KiB",
	 .max = "1TiB", .widens = WIDENS_MORE,
	 .doc = "At most so many bytes a second for the whole box, both ways together.",
	 .example = "network:\n  rate: 10MiB", .also = "bandwidth speed"},
	{.key = "network.bytes", .type = OPTION_SIZE, .offset = P(network.total_bytes), .min = "1KiB",
	 .max = "1024TiB", .widens = WIDENS_MORE,
	 .doc = "At most so many bytes for the whole box and run, both ways together.",
	 .example = "network:\n  bytes: 1GiB", .also = "limit max size total quota"},
	{.key = "network.connections", .type = OPTION_COUNT, .offset = P(network.connections),
	 .def = "1024", .min = "1", .max = "4096", .widens = WIDENS_MORE,
	 .doc = "Connections out of the box, and to published ports, that may be open at a time.",
	 .example = "network:\n  connections: 64", .also = "max_connections sockets"},

	{.key = "kernel", .type = OPTION_GROUP, .doc = "What of the kernel is within reach.",
	 .example = "kernel: {profile: strict}", .also = "seccomp syscalls"},
	{.key = "kernel.profile", .type = OPTION_WORD, .offset = P(profile), .def = "default",
	 .words = profile_words, .widens = WIDENS_MORE, .flag = "profile",
	 .doc = "Which system calls work. The others fail with an ordinary errno, and are in the "
		"audit log by name.",
	 .example = "kernel: {profile: strict}", .also = "seccomp syscalls"},
	{.key = "kernel.speculation", .type = OPTION_WORD, .offset = P(speculation), .def = "default",
	 .words = speculation_words, .widens = WIDENS_MORE, .item = ITEM_SPECULATION,
	 .doc = "What the processor may guess on the box's behalf, against code that reads by side "
		"channels what it must not. `strict` is refused where the processor is affected and "
		"offers no control.",
	 .example = "kernel: {speculation: strict}", .also = "spectre mitigations ssbd"},
	{.key = "kernel.l1d_flush", .type = OPTION_BOOL, .offset = P(l1d_flush), .def = "false",
	 .widens = WIDENS_MORE, .item = ITEM_L1D_FLUSH,
	 .doc = "Whether the processor's first cache is emptied each time that the box leaves it, so "
		"that who comes next finds nothing of the box's there. The host has to be booted "
		"with l1d_flush=on, and without simultaneous multithreading.",
	 .example = "kernel: {l1d_flush: true}", .also = "l1d flush cache_flush"},
	{.key = "kernel.core_scheduling", .type = OPTION_BOOL, .offset = P(core_scheduling),
	 .def = "false", .widens = WIDENS_MORE, .item = ITEM_CORE_SCHEDULING,
	 .doc = "Whether the box has each core of the processor to itself while it runs there: no "
		"other box and no program of the host then runs on the core's other threads.",
	 .example = "kernel: {core_scheduling: true}", .also = "core_sched sched_core smt coresched"},

	{.key = "session", .type = OPTION_GROUP,
	 .doc = "For `pale session`: a box that stays, with an interpreter in it. limits.wall, limits.cpu "
		"and those on output then hold for each execution; the others for the box.",
	 .example = "session: {kernel: python, imports: [numpy], idle: 10m}", .also = "sessions"},
	{.key = "session.kernel", .type = OPTION_WORD, .offset = P(session.kernel), .def = "python",
	 .words = kernel_words, .doc = "What runs the code.",
	 .example = "session: {kernel: python}", .also = "language lang interpreter"},
	{.key = "session.imports", .type = OPTION_TEXTS, .offset = P(session.imports),
	 .pattern = "^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$", .normal = import_normal,
	 .expected = "the name of a Python module, or a list of them",
	 .doc = "Modules that are imported before the first execution (Python), so that importing them "
		"then takes no time.",
	 .example = "session:\n  imports: [numpy, pandas]", .also = "import modules preload"},
	{.key = "session.rollback", .type = OPTION_BOOL, .offset = P(session.rollback), .def = "true",
	 .doc = "Whether the state before an execution is held while it runs, so that one that cannot be "
		"interrupted can be taken back (Python). Each execution says whether it "
		"could be.",
	 .example = "session: {rollback: false}", .also = "undo fork"},
	{.key = "session.grace", .type = OPTION_TIME, .offset = P(session.grace_ms), .def = "1s",
	 .min = "1ms", .max = "1h",
	 .doc = "How long an interrupted execution has to end by itself before it is taken back.",
	 .example = "session: {grace: 250ms}", .also = "interrupt_grace"},
	{.key = "session.idle", .type = OPTION_TIME, .offset = P(session.idle_ms), .def = "30m",
	 .min = "1s", .max = "10000h", .never = true, .widens = WIDENS_MORE,
	 .doc = "A session that nobody has used for so long, and in which nothing works, is ended.",
	 .example = "session: {idle: 2h}", .also = "idle_timeout timeout"},
	{.key = "session.lifetime", .type = OPTION_TIME, .offset = P(session.lifetime_ms),
	 .def = "24h", .min = "1s", .max = "10000h", .never = true, .widens = WIDENS_MORE,
	 .doc = "A session is ended after so long, whatever it does, frozen or not.",
	 .example = "session: {lifetime: 168h}", .also = "ttl max_age"},

	{.key = "audit", .type = OPTION_GROUP, .doc = "What is recorded besides what always is.",
	 .example = "audit: {files: all}", .also = "log logging events"},
	{.key = "audit.files", .type = OPTION_WORD, .offset = P(watch_files), .def = "off",
	 .words = watch_words, .widens = WIDENS_MORE,
	 .doc = "Which refused accesses to files are events in the audit log. Watching costs a few "
		"microseconds for each open.",
	 .example = "audit: {files: writes}", .also = "watch file_access opens"},

	{.key = "best_effort", .type = OPTION_WORDS, .offset = P(best_effort), .words = item_words,
	 .widens = WIDENS_MORE, .flag = "best-effort",
	 .doc = "Items that may be weaker than asked where this host cannot enforce them; without it, "
		"the launch is refused. Each use is in the audit log and in the result.",
	 .example = "best_effort: [memory, cpus]", .also = "optional fallback besteffort"},
	{.key = "env", .type = OPTION_ENV,
	 .doc = "Environment variables, besides PATH, HOME, USER and the like. Nothing is inherited "
		"from the caller. Names beginning with PALE_ are Pale's own.",
	 .example = "env: {LANG: C.UTF-8, SEED: 1}", .also = "environment environ variables envs"},
	{0},
};

const struct option_reserved policy_reserved[] = {
	{"network.ask", "until then nothing waits for a person"},
	{"approve", "until then nothing waits for a person"},
	{"approvals", "until then nothing waits for a person"},
	{"tools", "until then a box has no tools of the caller's"},
	{0},
};
/* clang-format on */

const struct policy_option *option_find(const char *key)
{
	for (const struct policy_option *o = policy_options; o->key; o++)
		if (strcmp(o->key, key) == 0)
			return o;
	return NULL;
}

const char *option_name(const struct policy_option *o)
{
	const char *dot = strrchr(o->key, '.');

	return dot ? dot + 1 : o->key;
}

bool option_group_given(const struct policy_option *group, const void *base)
{
	for (const struct policy_option *o = policy_options; o->key; o++)
		if (option_in_group(o, group->key) && option_given(o, base))
			return true;
	return false;
}

unsigned option_depth(const struct policy_option *o)
{
	unsigned depth = 0;

	for (const char *c = o->key; *c; c++)
		depth += *c == '.';
	return depth;
}

bool option_in_group(const struct policy_option *o, const char *group)
{
	const char *name = option_name(o);
	size_t len = strlen(group);

	if (name == o->key)
		return len == 0;
	return (size_t)(name - o->key) == len + 1 && memcmp(o->key, group, len) == 0;
}

const char *option_word_of(const struct option_word *words, unsigned value)
{
	for (; words->word; words++)
		if (words->value == value)
			return words->word;
	return "?";
}

/* Whether word is among the blank-separated words. */
static bool listed(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (; words && *words; words += strcspn(words, " "), words += strspn(words, " "))
		if (strcspn(words, " ") == len && strncasecmp(words, word, len) == 0)
			return true;
	return false;
}

void option_suggest_key(const char *group, const char *name, struct pale_err *err)
{
	const struct policy_option *best = NULL;
	size_t distance = strlen(name) < 4 ? 2 : 3;
	char key[128];

	snprintf(key, sizeof(key), "%s%s%s", group, *group ? "." : "", name);
	for (const struct option_reserved *k = policy_reserved; k->key; k++) {
		if (strcmp(k->key, key) == 0) {
			err_add(err, ": a later version of Pale will know it; %s", k->until);
			return;
		}
	}
	for (const struct policy_option *o = policy_options; o->key; o++) {
		size_t d;

		if (!option_in_group(o, group))
			continue;
		d = listed(o->also, name) ? 0 : str_distance(name, option_name(o), distance);
		if (d < distance) {
			distance = d;
			best = o;
		}
	}
	if (best) {
		err_add(err, ": did you mean %s?", option_name(best));
		return;
	}
	/* Right, but in the wrong place: `memory` at the top. */
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (strchr(o->key, '[') || !strchr(o->key, '.'))
			continue;
		if (strcmp(option_name(o), name) == 0 || listed(o->also, name)) {
			err_add(err, ": did you mean %s?", o->key);
			return;
		}
	}
}
