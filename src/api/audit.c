/* The audit log for the library's callers: see pale.h. */
#include "api.h"

#include "audit/prune.h"

void pale_audit_prune_daily(void)
{
	audit_prune_daily();
}
