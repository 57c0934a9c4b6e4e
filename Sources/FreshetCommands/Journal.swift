import FreshetRender

/// Reads journal entries of the daemon or of pipelines with journalctl(1).
enum Journal {
    static let permissionDenied =
        "Permission denied for the journal: be root or a member of group systemd-journal or adm."

    /// The matches for journalctl.
    ///
    /// - Parameters:
    ///   - pipelines: the pipelines; if empty, all entries of the unit.
    ///   - isPersonal: whether the daemon is a user's own.
    static func matches(_ pipelines: [String], isPersonal: Bool) -> [String] {
        // Also the unit: any program may write the field, but only the daemon writes as its unit.
        let unit = isPersonal ? ["--user", "--user-unit=freshetd.service"] : ["--unit=freshetd.service"]
        return unit + pipelines.map { "FRESHET_PIPELINE=\($0)" }
    }

    /// The last lines of a pipeline, as `status` shows them; empty without a journal or without a line.
    static func tail(of pipeline: String, _ count: Int, isPersonal: Bool, _ session: Session) -> [String] {
        guard count > 0, let journalctl = session.context.program("journalctl") else { return [] }
        let arguments =
            ["--no-pager", "--lines=\(count)", "--output=short"] + matches([pipeline], isPersonal: isPersonal)
        guard case .ended(_, let output, let errorOutput) = session.context.child(journalctl, arguments, .collected)
        else { return [] }
        let lines = output.split(separator: "\n").filter { !$0.hasPrefix("-- ") }.map {
            DisplayText.harmless(String($0))
        }
        // journalctl explains missing permissions in four lines.
        let isDenied = errorOutput.contains("insufficient permissions") || errorOutput.contains("not seeing messages")
        return lines.isEmpty && isDenied ? [permissionDenied] : lines
    }
}

extension Session {
    /// Whether the daemon at this socket is a user's own. Nil if the path does not show it: then no service manager has
    /// started the daemon, and its log is not in the journal.
    var isPersonalDaemon: Bool? {
        let path = socketPath
        if path == "/run/" + SocketPath.name { return false }
        return path == SocketPath.own(context) ? true : nil
    }
}
