/* Runs every file of a corpus through a fuzz target, in name order, as a TAP test: the normal test run has neither
 * clang nor time to search, but what was once found must stay mended. A crash ends the program, and the missing rest of
 * the plan is the failure. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define INPUT_MAX (1024 * 1024)

static int is_input(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int run_file(const char *path) {
    static uint8_t room[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    size_t len = fread(room, 1, sizeof room, f);
    fclose(f);
    /* An exact-size heap copy, so that AddressSanitizer sees a read past the end. */
    uint8_t *bytes = malloc(len ? len : 1);
    if (!bytes) return -1;
    memcpy(bytes, room, len);
    LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
    return 0;
}

int main(int argc, char **argv) {
    struct dirent **entries = NULL;
    int n = argc == 2 ? scandir(argv[1], &entries, is_input, alphasort) : -1;
    if (n <= 0) {
        fprintf(stderr, "usage: replay CORPUS: a directory with at least one input\n");
        return 2;
    }
    printf("1..%d\n", n);
    int failed = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        int r = run_file(path);
        if (r < 0) failed++;
        printf("%s %d - %s\n", r < 0 ? "not ok" : "ok", i + 1, entries[i]->d_name);
        fflush(stdout);
        free(entries[i]);
    }
    free(entries);
    return failed > 0;
}
