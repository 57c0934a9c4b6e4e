import CLinux

/// Access of other processes of the same user to this process.
public enum ProcessInspection {
    /// Forbids other processes of the same user to trace this process, to read its memory and its environment, and to
    /// dump its core (PR_SET_DUMPABLE, prctl(2)). The process holds credentials, and hooks run as the same user. Root
    /// keeps access. A program that this process starts is not protected.
    public static func forbid() { _ = freshet_prctl(PR_SET_DUMPABLE, 0) }
}
