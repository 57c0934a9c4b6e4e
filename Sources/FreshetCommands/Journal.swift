import FreshetRender

/// The journal's lines of the daemon or of pipelines: arguments for journalctl(1).
enum Journal {
    /// - Parameters:
    ///   - pipelines: whose lines; empty: all of the unit's.
    ///   - isPersonal: the daemon is a user's own.
    static func matches(_ pipelines: [String], isPersonal: Bool) -> [String] {
        // The unit too: any program may write the field, but not another's unit.
        let unit = isPersonal ? ["--user", "--user-unit=freshetd.service"] : ["--unit=freshetd.service"]
        return unit + pipelines.map { "FRESHET_PIPELINE=\($0)" }
    }

    /// The last lines of a pipeline, as `status` shows them; none if there is no journal to read, or no line.
    static func tail(of pipeline: String, _ count: Int, isPersonal: Bool, _ session: Session) -> [String] {
        guard count > 0, let journalctl = session.context.program("journalctl") else { return [] }
        let arguments =
            ["--no-pager", "--lines=\(count)", "--output=short"] + matches([pipeline], isPersonal: isPersonal)
        guard case .ended(_, let output, let talk) = session.context.child(journalctl, arguments, .collected) else {
            return []
        }
        let lines = output.split(separator: "\n").filter { !$0.hasPrefix("-- ") }.map {
            DisplayText.harmless(String($0))
        }
        // What journalctl says of rights takes four lines.
        guard lines.isEmpty, talk.contains("insufficient permissions") || talk.contains("not seeing messages") else {
            return lines
        }
        return ["You may not read the journal; be root, or in the group systemd-journal or adm."]
    }
}

extension Session {
    /// Whose journal the daemon at this socket writes to; nil: it is none that a service manager started, as far as its
    /// place tells.
    var isPersonalDaemon: Bool? {
        let path = socketPath
        if path == "/run/" + SocketPath.name { return false }
        return path == SocketPath.own(context) ? true : nil
    }
}
