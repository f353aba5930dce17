/* Prints the GPU tasks of this machine: cc -o tasks tasks.c && ./tasks [/var/lib/gpumgr/run/tasks] */
#include <fcntl.h>
#include <gpumgr/tasks.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    struct stat st;
    struct gpumgr_task k;
    int fd = open(argc > 1 ? argv[1] : "/var/lib/gpumgr/run/tasks", O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0) return perror("tasks"), 1;
    const struct gpumgr_tasks *t = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (t == MAP_FAILED || t->magic != GPUMGR_TASKS_MAGIC || t->version != GPUMGR_TASKS_VERSION) return 1;
    for (uint32_t i = 0; i < t->slot_count; i++) {
        if (!gpumgr_task_read(t, i, &k)) continue;
        printf("%s pid %d deadline %.3f s start %.6f end %.6f float %+.3f s %s\n",
               k.container[0] ? k.container : k.comm, k.pid, k.deadline_ns / 1e9, k.start_ns / 1e9, k.end_ns / 1e9,
               k.float_ns / 1e9, (const char *[]){"-", "hit", "miss", "pending"}[k.verdict & 3]);
    }
    return 0;
}
