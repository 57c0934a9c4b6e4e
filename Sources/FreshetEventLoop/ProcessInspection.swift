import CLinux

/// What a process lets others of the same user do with it.
public enum ProcessInspection {
    /// Forbids other processes of the same user to trace this one, to read its memory and its environment, and to have its
    /// core dumped (PR_SET_DUMPABLE, prctl(2)): it holds credentials, and hooks of the same user run beside it. Root still
    /// may. A program that this one starts begins anew, without the prohibition.
    public static func forbid() { _ = freshet_prctl(PR_SET_DUMPABLE, 0) }
}
