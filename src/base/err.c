/* Errors: see err.h. Runs in every process of Pale; formats into fixed buffers only. */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

int err_set(struct pale_err *err, enum pale_code code, const char *stage, int sys, const char *fmt,
	    ...)
{
	va_list ap;

	if (!err)
		return -(int)code;
	*err = (struct pale_err){.code = code, .sys = sys};
	snprintf(err->stage, sizeof(err->stage), "%s", stage);
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	if (sys)
		err_add(err, ": %s", strerror(sys));
	return -(int)code;
}

void err_add(struct pale_err *err, const char *fmt, ...)
{
	va_list ap;
	size_t used;

	if (!err)
		return;
	used = strlen(err->message);
	va_start(ap, fmt);
	vsnprintf(err->message + used, sizeof(err->message) - used, fmt, ap);
	va_end(ap);
}

int err_nomem(struct pale_err *err, const char *stage)
{
	return err_set(err, PALE_E_NOMEM, stage, 0, "out of memory");
}

bool err_is_lasting(int sys)
{
	switch (sys) {
	case EACCES:
	case EINVAL:
	case ENODEV:
	case ENOENT:
	case ENOSYS:
	case ENOTDIR:
	case EOPNOTSUPP:
	case EPERM:
	case EROFS: return true;
	default: return false;
	}
}
