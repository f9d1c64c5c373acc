/* Memory that is executable wherever it is readable. */
#include "attack.h"

#include <sys/personality.h>

ATTACK
{
	return personality(READ_IMPLIES_EXEC);
}
