/* The caller's session keyring. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3 /* session */, 0);
}
