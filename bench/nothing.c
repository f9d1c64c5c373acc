/* A static program that ends at once: what a single exec costs. */
int main(void)
{
	return 0;
}
