/* Logs as somebody may have altered them: the checker, the summary and the display must end, within
 * bounds, whatever the bytes are. The first byte chooses the seal and what an unfinished log means.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "audit/format.h"
#include "audit/lines.h"
#include "audit/summary.h"
#include "audit/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char id[] = "01m8kzd46mhybj3hzj5he7f686";
	struct audit_seal seal = {0};
	struct audit_verdict v;
	struct run_summary r;
	const char *text;
	size_t len;

	if (size == 0)
		return 0;
	_cleanup_close_ int fd = memfd_create("log", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		return 0;
	seal.present = data[0] & 1;
	seal.lines = data[0] >> 4;
	chain_genesis(id, seal.head);
	if (audit_verify_fd(id, fd, &seal, data[0] & 2 ? seal.head : NULL,
			    data[0] & 4 ? AUDIT_LOG_LIVE : AUDIT_LOG_SEALED, &v, NULL) == 0 &&
	    v.state == AUDIT_LOG_BROKEN && v.what[0] == '\0')
		__builtin_trap();
	for (const char *p = v.what; *p; p++)
		if ((unsigned char)*p < ' ')
			__builtin_trap();
	if (run_summarize(fd, &r, NULL) == 0)
		run_summary_done(&r);
	_cleanup_log_lines_ struct log_lines lines = LOG_LINES(fd);

	while (log_next(&lines, &text, &len) > 0) {
		_cleanup_line_ struct chain_line line = {0};
		_cleanup_buf_ struct buf out = BUF_INIT(2u << 20);

		if (chain_parse(text, len, &line))
			continue;
		if (audit_format_event(&out, line.object, false, data[0] & 8 ? 80 : 0) < 0)
			continue;
		/* Nothing that a terminal obeys. */
		for (size_t i = 0; i < out.len; i++)
			if ((unsigned char)out.data[i] < ' ' || out.data[i] == 0x7f)
				__builtin_trap();
	}
	return 0;
}
