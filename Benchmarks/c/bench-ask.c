// A command that asks a server and ends: before it is made -> it has ended.
//
//   bench-ask PACE-MS -- LABEL COUNT PROGRAM [ARGUMENT…] [-- …]
//
// The first is the limit. Each must end with success, or the repetition is a miss.
#include "bench.h"

#include <sys/wait.h>

static int pace_ms;

static int64_t measure_command(struct subject *subject) {
    int64_t before = now();
    pid_t child = start(subject->context, NULL);
    int status = 0;
    // No limit: what is measured here asks a server on this machine, and all of the run has one.
    if (waitpid(child, &status, 0) != child) fail("no end of %s", subject->label);
    int64_t after = now();
    pause_ms(pace_ms);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? after - before : -1;
}

int main(int argc, char **argv) {
    static struct subject subjects[MAX_SUBJECTS];
    size_t count = 0;
    if (argc < 3) die("too few arguments: see bench-ask.c");
    pace_ms = number(argv[1], "the pace", 60000);
    char **cursor = argv + 2, **group;
    for (int length; count < MAX_SUBJECTS && (length = next_group(&cursor, &group)) > 0; count++) {
        if (length < 3) die("a subject is LABEL COUNT PROGRAM …");
        subject_init(&subjects[count], group[0], number(group[1], "a count", MAX_REPETITIONS), group + 2);
        subjects[count].limit = subjects;
    }
    interleave(subjects, count, measure_command);
    table("command started -> it has asked, told and ended", subjects, count);
    return 0;
}
