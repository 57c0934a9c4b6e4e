import FreshetControl
import FreshetRender

extension CommandFailure {
    /// - Parameters:
    ///   - socket: the path that was tried.
    ///   - isInstalled: whether there is a `freshetd` on this machine.
    init(_ failure: ControlClient.Failure, socket: String, isInstalled: Bool, times: Times) {
        switch failure {
        case .refused(let error): self.init(error, times: times)
        case .noAccess(let what):
            self.init(.notPermitted, "you may not ask freshetd: \(what); check the rights of the socket's directory")
        case .notRunning(let what, let isSocketThere):
            self.init(
                .notRunning,
                "freshetd does not run: \(what)\n"
                    + Self.remedy(socket: socket, hasEnded: isSocketThere, isInstalled: isInstalled))
        case .notAnswering:
            self.init(
                .notRunning,
                "freshetd does not answer: it starts or stops slowly, or hangs"
                    + (socket.hasPrefix("/run/") ? "; '\(Self.systemctl("status", socket))' says which" : ""))
        case .closed: self.init(.notRunning, "freshetd closed the connection: it stops, or has too many clients")
        case .notFreshet:
            self.init(.notRunning, "who answers at '\(DisplayText.harmless(socket))' is not freshetd")
        case .noSuchMethod(let method):
            self.init(
                .failure,
                "the daemon does not have '\(DisplayText.harmless(method))': it is older than this freshetctl; "
                    + "'\(Self.systemctl("restart", socket))' starts the one that is installed")
        case .mismatch(let what):
            self.init(.failure, "\(DisplayText.harmless(what)): is the daemon of another version?")
        case .other(let what): self.init(.failure, what)
        }
    }

    /// Such as `'homepage' at 'comedy'`.
    private static func place(_ name: String, _ path: [String]) -> String {
        path.isEmpty ? "'\(name)'" : "'\(name)' at '\(path.joined(separator: " "))'"
    }

    /// What to do when nobody listens.
    private static func remedy(socket: String, hasEnded: Bool, isInstalled: Bool) -> String {
        guard isInstalled else {
            return "It is not installed here either, or not where freshetctl looks: beside itself and in /usr/sbin."
        }
        guard socket.hasPrefix("/run/") else {
            return "Is that the right path? '--socket' and $FRESHET_SOCKET name another than the usual one."
        }
        if hasEnded {
            return "It was killed, or crashed: '\(systemctl("status", socket))' says why.\n"
                + "Start it with '\(systemctl("start", socket))'."
        }
        return "Start it with '\(systemctl("start", socket))', at each boot with '\(systemctl("enable", socket))'.\n"
            + "'\(systemctl("status", socket))' says why it ended."
    }

    /// A socket in the user's own directory is that of the user's own daemon.
    private static func systemctl(_ verb: String, _ socket: String) -> String {
        "systemctl \(socket.hasPrefix("/run/user/") ? "--user " : "")\(verb) freshetd"
    }

    private init(_ error: ControlError, times: Times) {
        switch error {
        case .noSuchPipeline(let name, _, let file?):
            self.init(
                .failure,
                DisplayText.harmless(
                    "there is no pipeline '\(name)' yet: \(file) is not in force; 'freshetctl reload' reads it, or says what "
                        + "is wrong with the configuration"))
        case .noSuchPipeline(let name, let suggestion, nil):
            let hint = suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl list' shows those that there are"
            self.init(.failure, DisplayText.harmless("there is no pipeline '\(name)'\(hint)"))
        case .noSuchSignal(let name, let suggestion):
            let hint =
                suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl signals' shows those that there are"
            self.init(.failure, DisplayText.harmless("there is no signal '\(name)'\(hint)"))
        case .cannotFire(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' is not raised by hand: it is a single pipeline's, and 'freshetctl refresh NAME' runs one"
                ))
        case .faultyPipeline(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' does not run: its configuration has faults; 'freshetctl check' shows them"))
        case .noGeneration(let name):
            self.init(
                .failure,
                DisplayText.harmless("'\(name)' has no copy yet; 'freshetctl status \(name)' says why"))
        case .withdrawn(let name, let number, let since):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' has no copy now: it is past its max-age, and was withdrawn \(times.relative(since)); "
                        + "'freshetctl get \(name) --generation \(number)' prints what it was"))
        case .noSuchGeneration(let name, let number, let kept):
            let what =
                number.map { "generation \($0) of '\(name)' is not kept" } ?? "no older generation of '\(name)' is kept"
            let numbers = kept.map(String.init).joined(separator: ", ")
            let rest = kept.isEmpty ? "" : "; there \(kept.count == 1 ? "is generation" : "are generations") \(numbers)"
            self.init(.failure, DisplayText.harmless("\(what)\(rest). 'cache.keep' says how many are kept."))
        case .damagedGeneration(let name, let number):
            self.init(.failure, DisplayText.harmless("the file of generation \(number) of '\(name)' is damaged"))
        case .notReadable(let name, let number):
            self.init(
                .notPermitted,
                DisplayText.harmless(
                    "you may not read \(number.map { "generation \($0)" } ?? "what was refused") of '\(name)'; read it as root or as a member of the group of its "
                        + "file, or set cache.mode"))
        case .noCandidate(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "nothing that a check refused is kept of '\(name)'; 'freshetctl status \(name)' shows what is"))
        case .otherCandidate(let name, let digest):
            self.init(
                .failure,
                DisplayText.harmless(
                    "what is kept aside of '\(name)' is \(digest) by now; 'freshetctl diff \(name) --candidate' shows it"
                ))
        case .pinned(let name, let number):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' is pinned at generation \(number); 'freshetctl unpin \(name)' lets go of it"))
        case .configurationRefused(let diagnostics):
            let faults = diagnostics.count { $0.severity == .fault }
            self.init(
                .configuration, "the configuration has \(Count.text(faults, "fault")), keeping the one before")
        case .parametersRefused(let name, let refusals):
            let lines =
                refusals.map { "'\($0.parameter)' \($0.reason)" }
                + ["Nothing was set; 'freshetctl set \(name)' shows what there is."]
            self.init(.failure, lines.map { DisplayText.harmless($0) }.joined(separator: "\n"))
        case .nothingMore(let name, let path):
            self.init(.nothingMore, DisplayText.harmless("nothing more to load: \(Self.place(name, path)) is complete"))
        case .noSuchBranch(let name, let path, let suggestion):
            let hint =
                suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl status \(name)' shows where there are"
            self.init(
                .failure,
                DisplayText.harmless(
                    "no pages of '\(name)' are loaded on demand at \(path.map { "'\($0)'" }.joined(separator: " "))\(hint)"
                ))
        case .severalBranches(let name, let more):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' has more at \(more.total) places, name one: \(PipelineView.places(more))"))
        case .cannotLoadMore(let name, let reason):
            self.init(.failure, DisplayText.harmless("nothing more of '\(name)' can be loaded: \(reason)"))
        case .tryLater(let hint):
            self.init(.tryLater, "nothing was started: \(times.patience(hint)); --force passes it")
        case .failed(let name, let reason):
            self.init(.failure, DisplayText.harmless(name.map { "'\($0)': \(reason)" } ?? reason))
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
