/*
 * hostsim: imitates the host of a CI container on a machine where the caller is root.
 *
 * Containers, distributions and kernels each refuse other steps of a sandbox, and a test machine is
 * only one of them. This program puts the same obstacles in the way with the same means (a system
 * call filter, a masked /proc, dropped capabilities, sysctls of a namespace), in mount, pid, ipc
 * and uts namespaces of its own, and then executes a command as their pid 1. It confines nothing:
 * it is a stage for tests, not a sandbox.
 *
 *   hostsim [OPTION]... -- CMD [ARG]...
 *
 *   -s PROFILE  a container's system call filter: docker (its default), podman (its default),
 *               nouserns (no user namespaces: EPERM), nomount (AppArmor's docker-default: EACCES)
 *   -A          AppArmor's restriction of user namespaces as on Ubuntu 24.04: one can be made, but
 *               nothing can be done in it, and kernel.apparmor_restrict_unprivileged_userns is 1
 *   -m          /proc and /sys masked as in a container
 *   -c CAPS     keep only these capabilities: docker (its default), none, or a hexadecimal set as in
 *               /proc/PID/status
 *   -u UID      become this user, without supplementary groups
 *   -n          no_new_privs
 *   -L          a kernel without Landlock: ENOSYS
 *   -N          a kernel without seccomp user notification: EINVAL
 *   -S          no /dev/shm
 *   -M [KIND:]N at most N namespaces of a kind (user), in an outer user namespace of 65536 ids
 *   -y NAME=VALUE
 *               repeatable: /proc/sys/kernel/NAME reads VALUE; the others there read as they are, but
 *               all are mere copies, and cover that part of /proc
 *   -E NR[:ARG:VALUE]:ERRNO
 *               repeatable: system call number NR fails with ERRNO, or with 0 pretends to have
 *               succeeded; only where the low 32 bits of argument ARG equal VALUE, if given. Wins
 *               over -s, -A, -L and -N. Numbers are decimal, octal or hexadecimal.
 *
 * The exit status is the command's, 128 and its signal, 111 when the stage could not be set, or 2
 * for wrong options.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Linux 6.15; the same number on every architecture. */
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define EVERY_NAMESPACE                                                                            \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void die(const char *what)
{
    fprintf(stderr, "hostsim: %s: %s\n", what, strerror(errno));
    exit(111);
}

/* ---- the system call filter ---- */

static struct sock_filter filter[1024];
static unsigned short filter_length;

static void emit(unsigned short code, unsigned char jt, unsigned char jf, unsigned k)
{
    if (filter_length == LENGTH(filter)) {
        errno = E2BIG;
        die("filter");
    }
    filter[filter_length++] = (struct sock_filter){code, jt, jf, k};
}

/* Every rule begins and ends with the system call's number in the accumulator. */
static void load_number(void)
{
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
}

static void load_argument(int argument)
{
    /* Little-endian: the low half comes first. */
    size_t offset = offsetof(struct seccomp_data, args) + 8 * (size_t)argument;
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)offset);
}

static void answer(int error)
{
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (unsigned)error);
}

static void fail(int number, int error)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)number);
    answer(error);
}

static void fail_all(const int *numbers, size_t count, int error)
{
    for (size_t i = 0; i < count; i++)
        fail(numbers[i], error);
}

static void fail_where(int number, int argument, unsigned short test, unsigned value, int error)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (unsigned)number);
    load_argument(argument);
    emit(BPF_JMP | test | BPF_K, 0, 1, value);
    answer(error);
    load_number();
}

static void fail_if_any_bit(int number, int argument, unsigned mask, int error)
{
    fail_where(number, argument, BPF_JSET, mask, error);
}

static void fail_if_equal(int number, int argument, unsigned value, int error)
{
    fail_where(number, argument, BPF_JEQ, value, error);
}

/* clone3 has its flags in memory, where no filter sees them; ENOSYS makes C libraries use clone. */
static void fail_namespaces(unsigned flags, int error)
{
    fail_if_any_bit(SYS_clone, 0, flags, error);
    fail(SYS_clone3, ENOSYS);
}

/* NR[:ARG:VALUE]:ERRNO */
static int fail_as_told(const char *rule)
{
    long numbers[4];
    int count = 0;
    for (;;) {
        char *end;
        errno = 0;
        numbers[count++] = strtol(rule, &end, 0);
        if (errno || end == rule)
            return -1;
        if (*end == '\0')
            break;
        if (*end != ':' || count == (int)LENGTH(numbers))
            return -1;
        rule = end + 1;
    }
    if (count == 2)
        fail((int)numbers[0], (int)numbers[1]);
    else if (count == 4 && numbers[1] >= 0 && numbers[1] < 6)
        fail_if_equal((int)numbers[0], (int)numbers[1], (unsigned)numbers[2], (int)numbers[3]);
    else
        return -1;
    return 0;
}

/* moby's profiles/seccomp/default.json, as far as it differs from "allow" without CAP_SYS_ADMIN */
static void docker_profile(void)
{
    static const int refused[] = {
        SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree,
        SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
        SYS_open_tree_attr, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key,
        SYS_request_key, SYS_swapon, SYS_swapoff, SYS_kexec_load, SYS_init_module, SYS_finit_module,
        SYS_delete_module, SYS_acct, SYS_quotactl, SYS_reboot, SYS_settimeofday,
        SYS_open_by_handle_at, SYS_lookup_dcookie, SYS_move_pages, SYS_io_uring_setup,
        SYS_io_uring_enter, SYS_io_uring_register,
    };
    const unsigned af_vsock = 40;
    fail_all(refused, LENGTH(refused), EPERM);
    fail_namespaces(EVERY_NAMESPACE, EPERM);
    fail_if_equal(SYS_socket, 0, af_vsock, EPERM);
}

/* containers-common's profile: namespaces and mounts are allowed */
static void podman_profile(void)
{
    static const int refused[] = {
        SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_kexec_load, SYS_init_module,
        SYS_finit_module, SYS_delete_module, SYS_open_by_handle_at, SYS_io_uring_setup,
        SYS_io_uring_enter, SYS_io_uring_register,
    };
    fail_all(refused, LENGTH(refused), EPERM);
}

static void no_user_namespaces(void)
{
    fail_if_any_bit(SYS_unshare, 0, CLONE_NEWUSER, EPERM);
    fail_namespaces(CLONE_NEWUSER, EPERM);
}

static void no_mounts(void)
{
    static const int refused[] = {
        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree, SYS_move_mount, SYS_fsopen,
        SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
    };
    fail_all(refused, LENGTH(refused), EACCES);
}

/* AppArmor's profile unprivileged_userns: a user namespace comes without capabilities. Its maps
 * can be written here, unlike there. */
static void apparmor_user_namespaces(void)
{
    static const int refused[] = {SYS_sethostname, SYS_setns, SYS_chroot};
    const unsigned flags = EVERY_NAMESPACE & ~(unsigned)CLONE_NEWUSER;
    no_mounts();
    fail_all(refused, LENGTH(refused), EACCES);
    fail_if_any_bit(SYS_unshare, 0, flags, EPERM);
    fail_namespaces(flags, EPERM);
}

static void no_landlock(void)
{
    static const int refused[] = {
        SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
    };
    fail_all(refused, LENGTH(refused), ENOSYS);
}

static void no_notification(void)
{
    fail_if_any_bit(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, EINVAL);
}

static void load_filter(void)
{
    struct sock_fprog program = {filter_length, filter};
    if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return;
    /* Without CAP_SYS_ADMIN a filter needs this. */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        die("seccomp");
}

/* ---- mounts, namespaces, capabilities ---- */

static void mask_interfaces(void)
{
    static const char *const files[] = {
        "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts",
    };
    static const char *const directories[] = {"/proc/acpi", "/proc/scsi", "/sys/firmware"};
    static const char *const read_only[] = {
        "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
    };
    const unsigned long hardened = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    for (size_t i = 0; i < LENGTH(files); i++)
        if (!access(files[i], F_OK) && mount("/dev/null", files[i], NULL, MS_BIND, NULL))
            die(files[i]);
    for (size_t i = 0; i < LENGTH(directories); i++)
        if (!access(directories[i], F_OK) &&
            mount("tmpfs", directories[i], "tmpfs", MS_RDONLY, "size=0k"))
            die(directories[i]);
    for (size_t i = 0; i < LENGTH(read_only); i++)
        if (!access(read_only[i], F_OK) &&
            (mount(read_only[i], read_only[i], NULL, MS_BIND | MS_REC, NULL) ||
             mount(NULL, read_only[i], NULL, MS_BIND | MS_REMOUNT | hardened, NULL)))
            die(read_only[i]);
    if (mount("/sys", "/sys", NULL, MS_BIND | MS_REC, NULL) ||
        mount(NULL, "/sys", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL))
        die("/sys");
}

static void write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) < 0 || close(file))
        die(path);
}

/* Writes the map of the process that has just entered a user namespace. */
static void map_ids(pid_t process)
{
    static const char *const maps[] = {"uid_map", "gid_map"};
    char path[64];
    for (size_t i = 0; i < LENGTH(maps); i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)process, maps[i]);
        write_file(path, "0 0 65536\n");
    }
}

/* Settings that this kernel lacks, as NAME=VALUE. */
static const char *settings[8];
static size_t settings_length;

static int add_setting(const char *setting)
{
    if (settings_length == LENGTH(settings) || !strchr(setting, '=') || strchr(setting, '/'))
        return -1;
    settings[settings_length++] = setting;
    return 0;
}

static void copy_file(int from, int to, const char *name)
{
    char text[4096];
    int in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length = in < 0 ? -1 : read(in, text, sizeof text);
    close(in);
    if (length < 0)
        return; /* a directory, or one that cannot be read */
    int out = openat(to, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (out < 0 || write(out, text, (size_t)length) != length || close(out))
        die(name);
}

/* Nothing can be added to /proc itself. */
static void fake_settings(void)
{
    static const char place[] = "/proc/sys/kernel";
    int real = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (real < 0 || mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755"))
        die(place);
    int fake = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fdopendir(real);
    if (fake < 0 || !entries)
        die(place);
    for (struct dirent *entry; (entry = readdir(entries));)
        copy_file(real, fake, entry->d_name);
    closedir(entries);
    for (size_t i = 0; i < settings_length; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s", settings[i]);
        *strchr(name, '=') = '\0';
        int out = openat(fake, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (out < 0 || dprintf(out, "%s\n", strchr(settings[i], '=') + 1) < 0 || close(out))
            die(name);
    }
    close(fake);
}

/* The limit belongs to a user namespace, and only an outer one can be given another than the
 * host's. Its map has to be written by a process that stays outside. */
static void limit_namespaces(const char *limit)
{
    const char *number = strchr(limit, ':');
    char path[64];
    if (number)
        snprintf(path, sizeof path, "/proc/sys/user/max_%.*s_namespaces", (int)(number - limit),
                 limit);
    else
        snprintf(path, sizeof path, "/proc/sys/user/max_user_namespaces");
    int entered[2], mapped[2];
    char byte = 0;
    pid_t process = getpid();
    if (pipe(entered) || pipe(mapped))
        die("pipe");
    pid_t helper = fork();
    if (helper < 0)
        die("fork");
    if (helper == 0) {
        close(entered[1]);
        if (read(entered[0], &byte, 1) == 1)
            map_ids(process);
        _exit(write(mapped[1], &byte, 1) == 1 ? 0 : 1);
    }
    if (unshare(CLONE_NEWUSER))
        die("outer user namespace");
    if (write(entered[1], &byte, 1) != 1 || read(mapped[0], &byte, 1) != 1)
        die("map of the outer user namespace");
    waitpid(helper, NULL, 0);
    close(entered[0]);
    close(entered[1]);
    close(mapped[0]);
    close(mapped[1]);
    write_file(path, number ? number + 1 : limit);
}

#define EVERY_CAPABILITY (~0ull)
#define DOCKER_CAPABILITIES 0xa80425fbull

static void drop_bounding(unsigned long long kept)
{
    /* Beyond the last one that the kernel knows this is EINVAL. */
    for (int capability = 0; capability < 64; capability++)
        if (!(kept >> capability & 1))
            prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

static void keep_capabilities(unsigned long long kept)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {(unsigned)kept, (unsigned)kept, 0},
        {(unsigned)(kept >> 32), (unsigned)(kept >> 32), 0},
    };
    if (syscall(SYS_capset, &header, data))
        die("capset");
}

static void become(int uid)
{
    if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
        die("become the user");
}

/* ---- options ---- */

struct options {
    const char *profile, *limit;
    unsigned long long capabilities;
    int uid;
    int apparmor, masked, no_new_privs, no_landlock, no_notification, no_shared_memory;
};

static int parse_profile(const char *name, struct options *options)
{
    static const char *const known[] = {"docker", "podman", "nouserns", "nomount"};
    for (size_t i = 0; i < LENGTH(known); i++)
        if (!strcmp(name, known[i])) {
            options->profile = name;
            return 0;
        }
    return -1;
}

static int parse_capabilities(const char *name, struct options *options)
{
    if (!strcmp(name, "docker"))
        options->capabilities = DOCKER_CAPABILITIES;
    else if (!strcmp(name, "none"))
        options->capabilities = 0;
    else {
        char *end;
        options->capabilities = strtoull(name, &end, 16);
        return end == name || *end ? -1 : 0;
    }
    return 0;
}

/* The rules of -E are put into the filter as they are read: they come first, and so win. */
static int parse(int argc, char **argv, struct options *options)
{
    int option, wrong = 0;
    while ((option = getopt(argc, argv, "+s:Amc:u:nLNSM:y:E:")) != -1) {
        switch (option) {
        case 's': wrong |= parse_profile(optarg, options); break;
        case 'A':
            options->apparmor = 1;
            wrong |= add_setting("apparmor_restrict_unprivileged_userns=1");
            break;
        case 'm': options->masked = 1; break;
        case 'c': wrong |= parse_capabilities(optarg, options); break;
        case 'u': options->uid = atoi(optarg); break;
        case 'n': options->no_new_privs = 1; break;
        case 'L': options->no_landlock = 1; break;
        case 'N': options->no_notification = 1; break;
        case 'S': options->no_shared_memory = 1; break;
        case 'M': options->limit = optarg; break;
        case 'y': wrong |= add_setting(optarg); break;
        case 'E': wrong |= fail_as_told(optarg); break;
        default: wrong = 1;
        }
        if (wrong)
            return -1;
    }
    return optind < argc ? 0 : -1;
}

static void build_filter(const struct options *options)
{
    const char *profile = options->profile;
    if (!strcmp(profile, "docker"))
        docker_profile();
    else if (!strcmp(profile, "podman"))
        podman_profile();
    else if (!strcmp(profile, "nouserns"))
        no_user_namespaces();
    else if (!strcmp(profile, "nomount"))
        no_mounts();
    if (options->apparmor)
        apparmor_user_namespaces();
    if (options->no_landlock)
        no_landlock();
    if (options->no_notification)
        no_notification();
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void set_stage(const struct options *options)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        die("private mounts");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
        die("/proc");
    if (settings_length > 0)
        fake_settings();
    if (options->masked)
        mask_interfaces();
    if (options->no_shared_memory)
        while (!umount2("/dev/shm", MNT_DETACH))
            ;
    if (options->limit)
        limit_namespaces(options->limit);
}

int main(int argc, char **argv)
{
    struct options options = {.profile = "", .capabilities = EVERY_CAPABILITY, .uid = -1};
    load_number();
    if (parse(argc, argv, &options)) {
        fprintf(stderr, "hostsim: wrong options: see the head of hostsim.c\n");
        return 2;
    }
    if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS))
        die("unshare");
    pid_t stage = fork();
    if (stage < 0)
        die("fork");
    if (stage > 0) {
        int status;
        if (waitpid(stage, &status, 0) < 0)
            die("wait");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    set_stage(&options);
    build_filter(&options);
    drop_bounding(options.capabilities);
    if (options.uid >= 0)
        become(options.uid);
    else if (options.capabilities != EVERY_CAPABILITY)
        keep_capabilities(options.capabilities);
    if (options.no_new_privs)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (filter_length > 2)
        load_filter();
    /* Whoever ends this program ends the stage. After the change of user, which would undo it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    execvp(argv[optind], argv + optind);
    die(argv[optind]);
}
