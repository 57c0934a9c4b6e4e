import FreshetControl
import FreshetRender

extension CommandFailure {
    init(_ failure: ControlClient.Failure, socket: String, times: Times) {
        switch failure {
        case .refused(let error): self.init(error, times: times)
        case .noAccess(let what): self.init(.notPermitted, "\(what); check the rights of the socket's directory")
        case .notRunning(let what):
            // A socket in the user's own directory is that of the user's own daemon.
            let user = socket.hasPrefix("/run/user/") ? "--user " : ""
            self.init(
                .notRunning, "freshetd does not run: \(what)\nStart it with 'systemctl \(user)start freshetd'.")
        case .closed: self.init(.notRunning, "freshetd closed the connection: it stops, or has too many clients")
        case .mismatch(let what):
            self.init(.failure, "\(DisplayText.harmless(what)): is the daemon of another version?")
        case .other(let what): self.init(.failure, what)
        }
    }

    private init(_ error: ControlError, times: Times) {
        switch error {
        case .noSuchPipeline(let name, let suggestion):
            let hint = suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl list' shows those that there are"
            self.init(.failure, DisplayText.harmless("there is no pipeline '\(name)'\(hint)"))
        case .noGeneration(let name):
            self.init(
                .failure,
                DisplayText.harmless("'\(name)' has no copy yet; 'freshetctl status \(name)' says why"))
        case .configurationRefused(let diagnostics):
            let faults = diagnostics.count { $0.severity == .fault }
            self.init(
                .configuration, "the configuration has \(Count.text(faults, "fault")), keeping the one before")
        case .tryLater(let hint):
            self.init(.tryLater, "nothing was started: \(times.patience(hint)); --force passes it")
        case .busy(let reason): self.init(.tryLater, DisplayText.harmless("not now: \(reason)"))
        case .permissionDenied:
            self.init(
                .notPermitted,
                "you may not do this; do it as root, or as a member of the group freshet ('adduser NAME freshet')")
        case .invalidParameter(let name):
            self.init(.failure, "the daemon does not accept '\(DisplayText.harmless(name))': is it another version?")
        }
    }
}
