/* placeholder body */
#include "confine/cgroup_impl.h"

void cgroup_systemd_probe(const struct cgroup_source *src, const struct cgroup_places *places,
			  struct cgroup_host *ret)
{
	(void)src;
	(void)places;
	cgroup_why(ret, "a scope of systemd is not supported yet");
}

int cgroup_systemd_create(const struct cgroup_host *host, struct cgroup *g, const char *name,
			  struct pale_err *err)
{
	(void)host;
	(void)g;
	(void)name;
	return err_set(err, PALE_E_HOST, "confine", 0, "a scope of systemd is not supported yet");
}
