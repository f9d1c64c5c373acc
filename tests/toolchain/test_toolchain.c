/* Each way in which people install programs outside /usr: what becomes visible, and that it is no
 * more than that. */
#include "tree.h"

#include <sys/stat.h>
#include <unistd.h>

static void test_image(void **state)
{
	(void)state;
	assert_found("true", "run /usr/bin/true");
	assert_found("/bin/sh", "run /usr/bin/sh");
	assert_found("/usr/bin/env", "run /usr/bin/env");
	/* A link of the caller's to a program of the image. */
	tree_link("home/bin/mytrue", "/usr/bin/true");
	assert_found("mytrue", "run T/home/bin/mytrue\nlink T/home/bin/mytrue -> /usr/bin/true\n"
			       "path T/home/bin");
}

static void test_errors(void **state)
{
	(void)state;
	assert_found("nosuch", "127 command not found: \"nosuch\" is not in $PATH");
	assert_found("", "127 the command is empty");
	assert_found("./nosuch", "127 command not found: there is no \"T/work/nosuch\"");
	assert_found("/nonexistent/x", "127 command not found: there is no \"/nonexistent/x\"");
	assert_found("T/home", "126 \"T/home\" is a directory");
	tree_file("work/tool", "#!/bin/sh\n", 0644);
	assert_found("tool",
		     "127 command not found: \"tool\" is not in $PATH; for the file in the working "
		     "directory say ./tool");
	assert_found("./tool", "126 \"T/work/tool\" is not executable (chmod +x)");
	tree_file("home/bin/plain", "#!/bin/sh\n", 0644);
	assert_found("plain", "126 \"T/home/bin/plain\" is not executable (chmod +x)");
	tree_file("work/noline", "echo hello\n", 0755);
	assert_found("./noline",
		     "126 \"T/work/noline\" is neither a program nor a script with a #! line; to "
		     "have a shell read it: sh noline");
	tree_link("work/loop", "loop");
	assert_found("./loop", "126 \"T/work/loop\": Too many levels of symbolic links");
	tree_link("home/bin/gone", "T/home/nothing");
	assert_found("gone", "127 command not found: \"gone\" is not in $PATH");
}

static void test_refused_places(void **state)
{
	(void)state;
	assert_true(str_starts(tree_find("/proc/self/exe", NULL, NULL), "refused \"/proc/"));
	tree_link("work/p", "/proc/self/exe");
	assert_true(str_starts(tree_find("./p", NULL, NULL), "refused \"/proc/"));
	/* A home that looks like a Python installation is still a home. */
	tree_elf("home/bin/python3", NULL, NULL, NULL);
	tree_file("home/lib/python3.11/os.py", "", 0644);
	tree_file("home/pyvenv.cfg", "home = /usr/bin\n", 0644);
	assert_found("python3", "run T/home/bin/python3\nbind T/home/bin/python3\npath T/home/bin\n"
				"env VIRTUAL_ENV=T/home");
}

static void test_single_programs(void **state)
{
	(void)state;
	tree_elf("home/.deno/bin/deno", "/lib64/ld-linux-x86-64.so.2", NULL, "libc.so.6");
	assert_string_equal(
		tree_find("deno", NULL, ENV("PATH=T/home/.deno/bin:/usr/bin")),
		"run T/home/.deno/bin/deno\nbind T/home/.deno/bin/deno\npath T/home/.deno/bin");
	/* Beside share/ and lib/, in a directory where tokens may be kept. */
	tree_elf("home/.local/bin/solo", NULL, NULL, NULL);
	tree_file("home/.local/share/keyrings/login", "secret", 0600);
	tree_file("home/.local/lib/x", "", 0644);
	assert_found(
		"solo",
		"run T/home/.local/bin/solo\nbind T/home/.local/bin/solo\npath T/home/.local/bin");
	/* In the working directory, also when it looks like a package: that is the caller's work.
	 */
	tree_elf("work/bin/tool", NULL, NULL, NULL);
	tree_file("work/lib/x", "", 0644);
	assert_found("bin/tool", "run T/work/bin/tool\nbind T/work/bin/tool\npath T/work/bin");
	assert_found("./bin/../bin/tool",
		     "run T/work/bin/tool\nbind T/work/bin/tool\npath T/work/bin");
	/* Visible by the policy. */
	assert_string_equal(tree_find("bin/tool", NULL, ENV("VISIBLE=T/work")),
			    "run T/work/bin/tool\npath T/work/bin");
	/* A package of its own. */
	tree_elf("home/cmake-3.2/bin/cmake", NULL, NULL, NULL);
	tree_file("home/cmake-3.2/share/x", "", 0644);
	tree_link("home/bin/cmake", "../cmake-3.2/bin/cmake");
	assert_found("cmake",
		     "run T/home/bin/cmake\nlink T/home/bin/cmake -> ../cmake-3.2/bin/cmake\n"
		     "bind/ T/home/cmake-3.2\npath T/home/bin");
}

static void test_links(void **state)
{
	(void)state;
	tree_elf("home/real/deep/prog", NULL, NULL, NULL);
	tree_link("home/alias", "real");
	tree_link("home/bin/one", "T/home/alias/deep/two");
	tree_link("home/real/deep/two", "./prog");
	/* Each hop is there, the directory link in the middle too. */
	assert_found(
		"one",
		"run T/home/bin/one\nlink T/home/alias -> real\n"
		"link T/home/bin/one -> T/home/alias/deep/two\n"
		"bind T/home/real/deep/prog\nlink T/home/real/deep/two -> ./prog\npath T/home/bin");
	/* In the caller's own words only the last name matters. */
	assert_found("T/home/alias/deep/prog",
		     "run T/home/real/deep/prog\nbind T/home/real/deep/prog\n"
		     "path T/home/real/deep");
}

static void test_scripts(void **state)
{
	(void)state;
	tree_file("work/run.sh", "#!/bin/sh\necho\n", 0755);
	assert_found("./run.sh", "run T/work/run.sh\nbind T/work/run.sh\npath T/work");
	assert_string_equal(tree_find("run.sh", NULL, ENV("IS_FILE=1")),
			    "run T/work/run.sh\nbind T/work/run.sh\npath T/work");
	tree_elf("home/interp/fisch", NULL, NULL, NULL);
	tree_file("home/bin/a", "#! T/home/bin/b -x\n", 0755);
	tree_file("home/bin/b", "#!T/home/interp/fisch\t--flag \n", 0755);
	assert_found(
		"a",
		"run T/home/bin/a\nbind T/home/bin/a\nbind T/home/bin/b\nbind T/home/interp/fisch\n"
		"path T/home/bin");
	tree_file("home/bin/e", "#!/usr/bin/env fisch\n", 0755);
	assert_string_equal(
		tree_find("e", NULL, ENV("PATH=T/home/bin:T/home/interp:/usr/bin")),
		"run T/home/bin/e\nbind T/home/bin/e\nbind T/home/interp/fisch\npath T/home/bin\n"
		"path T/home/interp");
	assert_found("e", "127 \"T/home/bin/e\" wants \"fisch\", which is not in $PATH");
	tree_file("home/bin/s", "#!/usr/bin/env -S A=1 fisch --flag\n", 0755);
	assert_string_equal(
		tree_find("s", NULL, ENV("PATH=T/home/bin:T/home/interp:/usr/bin")),
		"run T/home/bin/s\nbind T/home/bin/s\nbind T/home/interp/fisch\npath T/home/bin\n"
		"path T/home/interp");
	tree_file("home/bin/s2", "#!/usr/bin/env -Sfisch --flag\n", 0755);
	assert_string_equal(
		tree_find("s2", NULL, ENV("PATH=T/home/bin:T/home/interp:/usr/bin")),
		"run T/home/bin/s2\nbind T/home/bin/s2\nbind T/home/interp/fisch\npath T/home/bin\n"
		"path T/home/interp");
	tree_file("home/bin/nosplit", "#!/usr/bin/env fisch --flag\n", 0755);
	assert_found(
		"nosplit",
		"127 \"T/home/bin/nosplit\": env is asked for a program called \"fisch --flag\"; "
		"it takes env -S");
	tree_file("home/bin/dos", "#!/bin/sh\r\n", 0755);
	assert_found("dos", "127 \"T/home/bin/dos\": its #! line ends in a carriage return "
			    "(Windows line ends)");
	tree_file("home/bin/none", "#!/opt/none/perl\n", 0755);
	assert_found("none",
		     "127 \"T/home/bin/none\" needs \"/opt/none/perl\", which does not exist");
	tree_file("home/bin/rel", "#!perl\n", 0755);
	assert_found("rel", "126 \"T/home/bin/rel\": its #! line has no absolute path");
	tree_file("home/bin/self", "#!T/home/bin/self\n", 0755);
	assert_found("self", "126 \"self\": too many interpreters of interpreters");
	tree_file("home/bin/empty", "#!", 0755);
	assert_found("empty", "126 \"T/home/bin/empty\": its #! line has no absolute path");
}

static void test_script_argument(void **state)
{
	(void)state;
	tree_file("work/job.py", "print(1)\n", 0644);
	assert_string_equal(tree_find("/bin/sh", "job.py", NULL),
			    "run /usr/bin/sh\nbind T/work/job.py\nscript T/work/job.py");
	assert_string_equal(tree_find("/bin/sh", "T/work/job.py", ENV("VISIBLE=T/work")),
			    "run /usr/bin/sh\nscript T/work/job.py");
	tree_link("home/job.py", "../work/job.py");
	assert_string_equal(
		tree_find("/bin/sh", "T/home/job.py", NULL),
		"run /usr/bin/sh\nlink T/home/job.py -> ../work/job.py\nbind T/work/job.py\n"
		"script T/home/job.py");
	assert_string_equal(tree_find("/bin/sh", "no.py", NULL),
			    "127 cannot find the script \"no.py\": No such file or directory");
	assert_string_equal(tree_find("/bin/sh", "T/work", NULL),
			    "126 the script \"T/work\" is no regular file");
	/* A link that an agent may have left, to what the interpreter would then print. */
	tree_file("home/.ssh/id", "secret", 0600);
	tree_link("work/evil.py", "../home/.ssh/id");
	assert_string_equal(
		tree_find("/bin/sh", "evil.py", NULL),
		"refused the script \"evil.py\" is a link that leads out of the workspace; name "
		"\"T/home/.ssh/id\" itself");
}

static void test_venv(void **state)
{
	(void)state;
	tree_elf("home/py/bin/python3.11", NULL, NULL, NULL);
	tree_link("home/py/bin/python3", "python3.11");
	tree_file("home/py/lib/python3.11/os.py", "", 0644);
	tree_file("home/venv/pyvenv.cfg", "Home = T/home/py/bin\nversion = 3.11\n", 0644);
	tree_link("home/venv/bin/python", "T/home/py/bin/python3.11");
	tree_file("home/venv/bin/tool", "#!T/home/venv/bin/python\n", 0755);
	assert_string_equal(tree_find("python", NULL, ENV("PATH=T/home/venv/bin:/usr/bin")),
			    "run T/home/venv/bin/python\nbind/ T/home/py\nbind/ T/home/venv\n"
			    "path T/home/venv/bin\nenv VIRTUAL_ENV=T/home/venv");
	/* A script of it, called through a link, as pipx does it: its directory only. */
	tree_link("home/.local/bin/tool", "../../venv/bin/tool");
	assert_found(
		"tool",
		"run T/home/.local/bin/tool\nlink T/home/.local/bin/tool -> ../../venv/bin/tool\n"
		"bind/ T/home/py\nbind/ T/home/venv\npath T/home/.local/bin");
	/* Python copied, not linked: only pyvenv.cfg tells. */
	tree_file("home/copy/pyvenv.cfg", "home = T/home/py/bin\n", 0644);
	tree_elf("home/copy/bin/python3", NULL, NULL, NULL);
	assert_found("T/home/copy/bin/python3", "run T/home/copy/bin/python3\nbind/ T/home/copy\n"
						"bind/ T/home/py\npath T/home/copy/bin\n"
						"env VIRTUAL_ENV=T/home/copy");
	/* Of the system's Python. */
	tree_file("home/sys/pyvenv.cfg", "home = /usr/bin\n", 0644);
	tree_link("home/sys/bin/python3", "/usr/bin/true");
	assert_found("T/home/sys/bin/python3", "run T/home/sys/bin/python3\nbind/ T/home/sys\n"
					       "path T/home/sys/bin\nenv VIRTUAL_ENV=T/home/sys");
	/* What it was made from is gone. */
	tree_file("home/old/pyvenv.cfg", "home = T/home/gone/bin\n", 0644);
	tree_elf("home/old/bin/python3", NULL, NULL, NULL);
	assert_found("T/home/old/bin/python3",
		     "127 the virtual environment \"T/home/old\" was made from the Python in "
		     "\"T/home/gone/bin\", which is gone; make it again");
	/* A path too long for a #! line. */
	tree_file("home/bin/long",
		  "#!/bin/sh\n'''exec' \"T/home/venv/bin/python\" \"$0\" \"$@\"\n' '''\n", 0755);
	assert_found(
		"long",
		"run T/home/bin/long\nbind T/home/bin/long\nbind/ T/home/py\nbind/ T/home/venv\n"
		"path T/home/bin");
	/* The environment is the working directory: its parts. */
	tree_file("home/venv/notes.txt", "", 0644);
	assert_string_equal(
		tree_find("bin/python", NULL, ENV("CWD=T/home/venv")),
		"run T/home/venv/bin/python\nbind/ T/home/py\nbind/ T/home/venv/bin\n"
		"bind T/home/venv/pyvenv.cfg\npath T/home/venv/bin\nenv VIRTUAL_ENV=T/home/venv");
	/* In the workspace, which is visible. */
	tree_file("work/.venv/pyvenv.cfg", "home = T/home/py/bin\n", 0644);
	tree_link("work/.venv/bin/python", "T/home/py/bin/python3");
	assert_string_equal(tree_find(".venv/bin/python", NULL, ENV("VISIBLE=T/work")),
			    "run T/work/.venv/bin/python\nbind/ T/home/py\npath T/work/.venv/bin\n"
			    "env VIRTUAL_ENV=T/work/.venv");
}

static void test_pip_user(void **state)
{
	(void)state;
	tree_file("home/.local/bin/black", "#!/usr/bin/python3.11\n", 0755);
	tree_file("home/.local/lib/python3.11/site-packages/black.py", "", 0644);
	if (access("/usr/bin/python3.11", X_OK) < 0)
		return; /* then the interpreter is missing, as the tests of scripts have it */
	assert_found("black",
		     "run T/home/.local/bin/black\nbind T/home/.local/bin/black\n"
		     "bind/ T/home/.local/lib/python3.11/site-packages\npath T/home/.local/bin\n"
		     "env PYTHONPATH=T/home/.local/lib/python3.11/site-packages");
}

static void test_others(void **state)
{
	(void)state;
	tree_file("home/conda/conda-meta/history", "", 0644);
	tree_elf("home/conda/bin/python3.12", NULL, "$ORIGIN/../lib", "libz.so");
	tree_elf_lib("home/conda/lib/libz.so", NULL, NULL);
	tree_link("home/conda/bin/python", "python3.12");
	assert_found("T/home/conda/bin/python",
		     "run T/home/conda/bin/python\nbind/ T/home/conda\n"
		     "path T/home/conda/bin\nenv CONDA_PREFIX=T/home/conda");

	tree_elf("home/.nvm/versions/node/v20/bin/node", NULL, NULL, NULL);
	tree_file("home/.nvm/versions/node/v20/lib/node_modules/npm/bin/npm-cli.js",
		  "#!/usr/bin/env node\n", 0755);
	tree_link("home/.nvm/versions/node/v20/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js");
	assert_string_equal(
		tree_find("npm", NULL, ENV("PATH=T/home/.nvm/versions/node/v20/bin:/usr/bin")),
		"run T/home/.nvm/versions/node/v20/bin/npm\n"
		"bind/ T/home/.nvm/versions/node/v20\n"
		"path T/home/.nvm/versions/node/v20/bin");

	tree_elf("home/.sdkman/candidates/java/21/bin/java", NULL, NULL, NULL);
	tree_file("home/.sdkman/candidates/java/21/release", "", 0644);
	tree_file("home/.sdkman/candidates/java/21/lib/modules", "", 0644);
	tree_link("home/.sdkman/candidates/java/current", "21");
	assert_string_equal(
		tree_find("java", NULL, ENV("PATH=T/home/.sdkman/candidates/java/current/bin")),
		"run T/home/.sdkman/candidates/java/21/bin/java\n"
		"bind/ T/home/.sdkman/candidates/java/21\n"
		"path T/home/.sdkman/candidates/java/21/bin");
	tree_file("home/mvn/bin/mvn", "#!/bin/sh\n", 0755);
	tree_file("home/mvn/lib/x", "", 0644);
	assert_string_equal(tree_find("mvn", NULL,
				      ENV("PATH=T/home/mvn/bin:/usr/bin",
					  "JAVA_HOME=T/home/.sdkman/candidates/java/current")),
			    "run T/home/mvn/bin/mvn\nbind/ "
			    "T/home/.sdkman/candidates/java/21\nbind/ T/home/mvn\n"
			    "path T/home/mvn/bin\npath T/home/.sdkman/candidates/java/21/bin\n"
			    "env JAVA_HOME=T/home/.sdkman/candidates/java/21");

	tree_elf("home/go1.22/bin/go", NULL, NULL, NULL);
	tree_file("home/go1.22/src/runtime/x.go", "", 0644);
	assert_found("T/home/go1.22/bin/go",
		     "run T/home/go1.22/bin/go\nbind/ T/home/go1.22\npath T/home/go1.22/bin");

	/* A project's own tools. */
	tree_file("work/node_modules/typescript/bin/tsc", "#!/bin/sh\n", 0755);
	tree_link("work/node_modules/.bin/tsc", "../typescript/bin/tsc");
	assert_found("node_modules/.bin/tsc",
		     "run T/work/node_modules/.bin/tsc\nbind/ T/work/node_modules\n"
		     "path T/work/node_modules/.bin");
}

static void test_pyenv(void **state)
{
	static const char shim[] =
		"#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\n"
		"exec \"T/home/.pyenv/libexec/pyenv\" exec \"$program\" \"$@\"\n";
	const char *path = "PATH=T/home/.pyenv/shims:/usr/bin";

	(void)state;
	for (int i = 9; i <= 12; i++) {
		char name[64];

		snprintf(name, sizeof(name), "home/.pyenv/versions/3.%d.1/bin/python3", i);
		tree_elf(name, NULL, NULL, NULL);
		snprintf(name, sizeof(name), "home/.pyenv/versions/3.%d.1/lib/python3.%d/os.py", i,
			 i);
		tree_file(name, "", 0644);
	}
	tree_file("home/.pyenv/shims/python3", shim, 0755);
	tree_file("home/.pyenv/shims/black", shim, 0755);
	tree_file("home/.pyenv/shims/true", shim, 0755);
	tree_file("home/.pyenv/version", "3.11.1\n", 0644);
	tree_file("home/.pyenv/versions/3.9.1/bin/black",
		  "#!T/home/.pyenv/versions/3.9.1/bin/python3\n", 0755);
#define V(n)                                                                                 \
	"run T/home/.pyenv/versions/" n "/bin/python3\nbind/ T/home/.pyenv/versions/" n "\n" \
	"path T/home/.pyenv/versions/" n "/bin"
	assert_string_equal(tree_find("python3", NULL, ENV(path)), V("3.11.1"));
	assert_string_equal(tree_find("T/home/.pyenv/shims/python3", NULL, NULL), V("3.11.1"));
	assert_string_equal(tree_find("python3", NULL, ENV(path, "PYENV_VERSION=3.9.1")),
			    V("3.9.1"));
	/* The newest of a line, and the prefix. */
	assert_string_equal(tree_find("python3", NULL, ENV(path, "PYENV_VERSION=3")), V("3.12.1"));
	assert_string_equal(tree_find("python3", NULL, ENV(path, "PYENV_VERSION=python-3.10")),
			    V("3.10.1"));
	assert_string_equal(tree_find("python3", NULL, ENV(path, "PYENV_VERSION=9:3.9.1")),
			    V("3.9.1"));
	assert_string_equal(tree_find("true", NULL, ENV(path, "PYENV_VERSION=system")),
			    "run /usr/bin/true");
	/* A name that leads elsewhere (CVE-2022-35861). */
	tree_elf("home/evil/bin/python3", NULL, NULL, NULL);
	assert_true(str_starts(tree_find("python3", NULL, ENV(path, "PYENV_VERSION=../../evil")),
			       "127 "));
	/* The working directory's wish is an agent's. */
	tree_file("work/.python-version", "3.9.1\n", 0644);
	assert_string_equal(tree_find("python3", NULL, ENV(path)), V("3.11.1"));
	assert_string_equal(
		tree_find("black", NULL, ENV(path)),
		"127 \"black\": pyenv has no such command in its version (PYENV_VERSION or "
		"\"T/home/.pyenv/version\"); there is one in 3.9.1: set PYENV_VERSION");
	/* A script that asks env for the shim. */
	tree_file("work/job", "#!/usr/bin/env python3\n", 0755);
	assert_string_equal(tree_find("./job", NULL, ENV(path)),
			    "run T/work/job\nbind/ T/home/.pyenv/versions/3.11.1\nbind T/work/job\n"
			    "path T/work\npath T/home/.pyenv/versions/3.11.1/bin");
}

static void test_rustup(void **state)
{
	const char *path = "PATH=T/home/.cargo/bin:/usr/bin";

	(void)state;
	tree_elf("home/.cargo/bin/rustup", NULL, NULL, NULL);
	tree_link("home/.cargo/bin/cargo", "rustup");
	tree_link("home/.cargo/bin/rls", "rustup");
	tree_file("home/.cargo/credentials.toml", "token", 0600);
	tree_elf("home/.cargo/bin/rg", NULL, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		char name[96];
		const char *c = i ? "nightly" : "stable";

		snprintf(name, sizeof(name), "home/.rustup/toolchains/%s-x/bin/cargo", c);
		tree_elf(name, NULL, "$ORIGIN/../lib", "libstd.so");
		snprintf(name, sizeof(name), "home/.rustup/toolchains/%s-x/bin/rustc", c);
		tree_elf(name, NULL, NULL, NULL);
		snprintf(name, sizeof(name), "home/.rustup/toolchains/%s-x/lib/rustlib/x", c);
		tree_file(name, "", 0644);
	}
	tree_file("home/.rustup/settings.toml",
		  "version = \"12\"\ndefault_toolchain = \"stable-x\"\n\n[overrides]\n"
		  "\"/elsewhere\" = \"nightly-x\"\n",
		  0644);
#define R(n)                                                                                  \
	"run T/home/.rustup/toolchains/" n "-x/bin/cargo\nbind/ T/home/.rustup/toolchains/" n \
	"-x\n"                                                                                \
	"path T/home/.rustup/toolchains/" n "-x/bin"
	assert_string_equal(tree_find("cargo", NULL, ENV(path)), R("stable"));
	assert_string_equal(tree_find("cargo", NULL, ENV(path, "RUSTUP_TOOLCHAIN=nightly")),
			    R("nightly"));
	assert_string_equal(tree_find("cargo", NULL, ENV(path, "ARG=+nightly")),
			    R("nightly") "\ndrop 1");
	assert_string_equal(
		tree_find("cargo", NULL, ENV(path, "ARG=+beta")),
		"127 \"cargo\": rustup has no toolchain \"beta\" in \"T/home/.rustup/toolchains\"");
	assert_true(str_starts(tree_find("cargo", NULL, ENV(path, "ARG=+../../x")), "127 "));
	assert_true(str_starts(tree_find("rls", NULL, ENV(path)),
			       "127 \"rls\" is no part of the Rust toolchain"));
	tree_file("home/.rustup/settings.toml",
		  "default_toolchain = \"stable-x\"\n[overrides]\n\"T/work\" = \"nightly-x\"\n",
		  0644);
	assert_string_equal(tree_find("cargo", NULL, ENV(path)), R("nightly"));
	/* What cargo installed is a program alone: credentials lie beside it. */
	assert_string_equal(
		tree_find("rg", NULL, ENV(path)),
		"run T/home/.cargo/bin/rg\nbind T/home/.cargo/bin/rg\npath T/home/.cargo/bin");
}

static void test_volta_and_fnm(void **state)
{
	const char *path = "PATH=T/home/.volta/bin:/usr/bin";

	(void)state;
	tree_elf("home/.volta/bin/volta-shim", NULL, NULL, NULL);
	tree_link("home/.volta/bin/node", "volta-shim");
	tree_link("home/.volta/bin/npm", "volta-shim");
	tree_link("home/.volta/bin/tsc", "volta-shim");
	tree_file("home/.volta/tools/user/platform.json",
		  "{\"node\": {\"runtime\": \"20.1.0\", \"npm\": null}, \"yarn\": null}", 0644);
	tree_elf("home/.volta/tools/image/node/20.1.0/bin/node", NULL, NULL, NULL);
	tree_file("home/.volta/tools/image/node/20.1.0/lib/node_modules/x", "", 0644);
	assert_string_equal(tree_find("node", NULL, ENV(path)),
			    "run T/home/.volta/tools/image/node/20.1.0/bin/node\n"
			    "bind/ T/home/.volta/tools/image/node/20.1.0\n"
			    "path T/home/.volta/tools/image/node/20.1.0/bin");
	assert_true(str_starts(tree_find("npm", NULL, ENV(path)), "127 "));
	tree_file("home/.volta/tools/user/platform.json",
		  "{\"node\": {\"runtime\": \"../../../evil\"}}", 0644);
	assert_true(str_starts(tree_find("node", NULL, ENV(path)), "127 "));
	tree_file("home/.volta/tools/user/platform.json", "{{{{", 0644);
	assert_true(str_starts(tree_find("node", NULL, ENV(path)), "127 "));

	/* fnm puts a link of the shell's own in front: the real directory is what counts inside. */
	tree_elf("home/.fnm/node-versions/v20/installation/bin/node", NULL, NULL, NULL);
	tree_file("home/.fnm/node-versions/v20/installation/lib/node_modules/x", "", 0644);
	tree_link("run/fnm/123", "T/home/.fnm/node-versions/v20/installation");
	assert_string_equal(tree_find("node", NULL, ENV("PATH=T/run/fnm/123/bin:/usr/bin")),
			    "run T/home/.fnm/node-versions/v20/installation/bin/node\n"
			    "bind/ T/home/.fnm/node-versions/v20/installation\n"
			    "path T/home/.fnm/node-versions/v20/installation/bin");
}

static void test_libraries(void **state)
{
	(void)state;
	tree_elf("work/build/app", "/lib64/ld-linux-x86-64.so.2", "$ORIGIN/../lib:T/work/more",
		 "liba.so:libc.so.6");
	tree_elf_lib("work/lib/liba.so.1", "${ORIGIN}", "libb.so");
	tree_link("work/lib/liba.so", "liba.so.1");
	tree_elf_lib("work/lib/libb.so", NULL, NULL);
	assert_found("build/app",
		     "run T/work/build/app\nbind T/work/build/app\n"
		     "link T/work/lib/liba.so -> liba.so.1\nbind T/work/lib/liba.so.1\n"
		     "bind T/work/lib/libb.so\npath T/work/build");
	tree_elf("work/build/musl", "/lib/ld-musl-none.so.1", NULL, NULL);
	assert_found("build/musl",
		     "127 \"T/work/build/musl\" needs the loader \"/lib/ld-musl-none.so.1\", which "
		     "this host does not have: it was built for another distribution");
	/* A loader of its own. */
	tree_elf_lib("home/nix/ld.so", NULL, NULL);
	tree_elf("home/bin/nixed", "T/home/nix/ld.so", NULL, NULL);
	assert_found("nixed", "run T/home/bin/nixed\nbind T/home/bin/nixed\nbind "
			      "T/home/nix/ld.so\npath T/home/bin");
}

/* What a file in a workspace may name, if an agent wrote it: nothing but programs. */
static void test_hostile(void **state)
{
	(void)state;
	tree_file("home/.ssh/id", "secret", 0600);
	tree_file("home/.ssh/id_x", "secret",
		  0700); /* on file systems where everything is executable */
	tree_file("work/a", "#!T/home/.ssh/id\n", 0755);
	assert_found("./a", "126 \"T/home/.ssh/id\" is not executable (chmod +x)");
	tree_file("work/a", "#!T/home/.ssh/id_x\n", 0755);
	assert_true(str_starts(tree_find("./a", NULL, NULL),
			       "126 \"T/home/.ssh/id_x\" is neither a program"));
	tree_file("work/a", "#!T/home/.ssh\n", 0755);
	assert_found("./a", "126 \"T/home/.ssh\" is a directory");
	tree_link("work/l", "T/home/.ssh/id_x");
	assert_true(str_starts(tree_find("./l", NULL, NULL), "126 "));
	/* A package of the caller's is not shown whole because an agent's file names its program.
	 */
	tree_elf("home/private/bin/tool", NULL, NULL, NULL);
	tree_file("home/private/share/secret", "", 0644);
	tree_file("work/a", "#!T/home/private/bin/tool\n", 0755);
	assert_found("./a",
		     "run T/work/a\nbind T/home/private/bin/tool\nbind T/work/a\npath T/work");
	assert_found("T/home/private/bin/tool",
		     "run T/home/private/bin/tool\nbind/ T/home/private\npath T/home/private/bin");
	/* Libraries and loaders. */
	tree_elf("work/p", "T/home/.ssh/id_x", NULL, NULL);
	assert_true(str_starts(tree_find("./p", NULL, NULL), "127 "));
	tree_elf_lib("home/private/share/libsecret.so", NULL, NULL);
	tree_elf("work/p", NULL, "T/home/private/share:T/home/.ssh:$ORIGIN/../home/.ssh",
		 "libsecret.so:id_x");
	assert_found("./p", "run T/work/p\nbind T/work/p\npath T/work\nhint");
	/* pyvenv.cfg. */
	tree_elf("work/v/bin/python3", NULL, NULL, NULL);
	tree_file("work/v/pyvenv.cfg", "home = T/home/.ssh\n", 0644);
	assert_true(str_starts(tree_find("v/bin/python3", NULL, NULL), "127 "));
	tree_link("home/.ssh/python3", "id_x");
	assert_true(str_starts(tree_find("v/bin/python3", NULL, NULL), "126 "));
	/* The marks of a toolchain around the workspace do not make it one. */
	tree_file("work/conda-meta/history", "", 0644);
	tree_file("work/.env", "secret", 0600);
	tree_elf("work/bin/x", NULL, NULL, NULL);
	assert_null(strstr(tree_find("bin/x", NULL, NULL), "bind/ T/work\n"));
	assert_null(strstr(tree_find("bin/x", NULL, NULL), ".env"));
	/* Special files. */
	tree_remove("work/a");
	{
		char path[128];

		snprintf(path, sizeof(path), "%s/work/a", tree_root);
		assert_int_equal(mkfifo(path, 0777), 0);
	}
	assert_found("./a", "126 \"T/work/a\" is no regular file");
}

#define T(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_image),		 T(test_errors),    T(test_refused_places),
		T(test_single_programs), T(test_links),	    T(test_scripts),
		T(test_script_argument), T(test_venv),	    T(test_pip_user),
		T(test_others),		 T(test_pyenv),	    T(test_rustup),
		T(test_volta_and_fnm),	 T(test_libraries), T(test_hostile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
