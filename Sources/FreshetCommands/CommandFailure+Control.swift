import FreshetControl
import FreshetRender

extension CommandFailure {
    /// The message for a failed call, with the remedy.
    ///
    /// - Parameters:
    ///   - socket: the path of the socket.
    ///   - isInstalled: whether there is a `freshetd` on this machine.
    init(_ failure: ControlClient.Failure, socket: String, isInstalled: Bool, times: Times) {
        switch failure {
        case .refused(let error): self.init(error, times: times)
        case .noAccess(let what):
            self.init(
                .notPermitted, "permission denied by freshetd: \(what); check the rights of the socket's directory")
        case .notRunning(let what, let isSocketThere):
            self.init(
                .notRunning,
                "freshetd does not run: \(what)\n"
                    + Self.remedy(socket: socket, hasEnded: isSocketThere, isInstalled: isInstalled))
        case .notAnswering:
            self.init(
                .notRunning,
                "freshetd does not answer: it starts or stops slowly, or hangs"
                    + (socket.hasPrefix("/run/") ? "; '\(Self.systemctl("status", socket))' shows which" : ""))
        case .closed:
            self.init(
                .notRunning, "freshetd closed the connection: it is stopping, or too many clients are connected")
        case .notFreshet:
            self.init(.notRunning, "the program that answers at '\(DisplayText.harmless(socket))' is not freshetd")
        case .noSuchMethod(let method):
            self.init(
                .failure,
                "the daemon does not support '\(DisplayText.harmless(method))': it is older than this freshetctl; "
                    + "'\(Self.systemctl("restart", socket))' starts the installed version")
        case .mismatch(let what):
            self.init(
                .failure,
                "\(DisplayText.harmless(what)); the daemon and freshetctl may have different versions: "
                    + "'\(Self.systemctl("restart", socket))' starts the installed version")
        case .other(let what): self.init(.failure, what)
        }
    }

    /// Such as `'homepage' at 'comedy'`.
    private static func branch(_ name: String, _ path: [String]) -> String {
        path.isEmpty ? "'\(name)'" : "'\(name)' at '\(path.joined(separator: " "))'"
    }

    /// The remedy if no daemon has the socket.
    private static func remedy(socket: String, hasEnded: Bool, isInstalled: Bool) -> String {
        guard isInstalled else {
            return "It is not installed beside freshetctl or in /usr/sbin."
        }
        guard socket.hasPrefix("/run/") else {
            return "Check the path: '--socket' or $FRESHET_SOCKET names it."
        }
        if hasEnded {
            return "It was killed or crashed: '\(systemctl("status", socket))' shows why.\n"
                + "Start it with '\(systemctl("start", socket))'."
        }
        return "Start it with '\(systemctl("start", socket))', at each boot with '\(systemctl("enable", socket))'.\n"
            + "'\(systemctl("status", socket))' shows why it ended."
    }

    /// A socket in the user's own runtime directory belongs to the user's own daemon.
    private static func systemctl(_ verb: String, _ socket: String) -> String {
        "systemctl \(socket.hasPrefix("/run/user/") ? "--user " : "")\(verb) freshetd"
    }

    private init(_ error: ControlError, times: Times) {
        switch error {
        case .noSuchPipeline(let name, _, let file?):
            self.init(
                .failure,
                DisplayText.harmless(
                    "there is no pipeline '\(name)' yet: \(file) is not active; 'freshetctl reload' reads it, or prints "
                        + "its errors"))
        case .noSuchPipeline(let name, let suggestion, nil):
            let hint = suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl list' lists the pipelines"
            self.init(.failure, DisplayText.harmless("there is no pipeline '\(name)'\(hint)"))
        case .noSuchSignal(let name, let suggestion):
            let hint =
                suggestion.map { "; did you mean '\($0)'?" } ?? "; 'freshetctl signals' lists the signals"
            self.init(.failure, DisplayText.harmless("there is no signal '\(name)'\(hint)"))
        case .cannotFire(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "cannot fire '\(name)': it belongs to a single pipeline; 'freshetctl refresh NAME' runs a pipeline"
                ))
        case .invalidPipeline(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' does not run: its configuration has errors; 'freshetctl check' prints them"))
        case .noGeneration(let name):
            self.init(
                .failure,
                DisplayText.harmless("'\(name)' has no copy yet; 'freshetctl status \(name)' shows why"))
        case .withdrawn(let name, let number, let since):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' has no copy now: it is past its max-age and was withdrawn \(times.relative(since)); "
                        + "'freshetctl get \(name) --generation \(number)' prints it"))
        case .noSuchGeneration(let name, let number, let kept):
            let what =
                number.map { "generation \($0) of '\(name)' is not kept" } ?? "no older generation of '\(name)' is kept"
            let numbers = kept.map(String.init).joined(separator: ", ")
            let rest = kept.isEmpty ? "" : "; kept: \(numbers)"
            self.init(.failure, DisplayText.harmless("\(what)\(rest); cache.keep sets how many are kept"))
        case .damagedGeneration(let name, let number):
            self.init(
                .failure,
                DisplayText.harmless(
                    "the file of generation \(number) of '\(name)' is damaged; 'freshetctl fsck --repair' removes it"))
        case .notReadable(let name, let number):
            self.init(
                .notPermitted,
                DisplayText.harmless(
                    "permission denied: cannot read \(number.map { "generation \($0)" } ?? "the rejected content") of "
                        + "'\(name)'; be root or a member of the group of its file, or set cache.mode"))
        case .noCandidate(let name):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' has no rejected content; 'freshetctl status \(name)' shows its state"))
        case .otherCandidate(let name, let digest):
            self.init(
                .failure,
                DisplayText.harmless(
                    "the rejected content of '\(name)' has changed: its digest is \(digest); "
                        + "'freshetctl diff \(name) --candidate' shows it"))
        case .pinned(let name, let number):
            self.init(
                .failure,
                DisplayText.harmless(
                    "nothing changed: '\(name)' is pinned at generation \(number); 'freshetctl unpin \(name)' unpins it"
                ))
        case .configurationRefused(let diagnostics):
            let errors = diagnostics.count { $0.severity == .error }
            self.init(
                .configuration,
                "reload refused: \(Count.text(errors, "error")); the previous configuration stays active")
        case .parametersRefused(let name, let refusals):
            let lines =
                refusals.map { "'\($0.parameter)' \($0.reason)" }
                + ["Nothing was set; 'freshetctl set \(name)' shows the parameters."]
            self.init(.failure, lines.map { DisplayText.harmless($0) }.joined(separator: "\n"))
        case .nothingMore(let name, let path):
            self.init(
                .nothingMore, DisplayText.harmless("nothing more to load: \(Self.branch(name, path)) is complete"))
        case .noSuchBranch(let name, let path, let suggestion):
            let hint =
                suggestion.map { "; did you mean '\($0)'?" }
                ?? "; 'freshetctl status \(name)' shows the branches that have more"
            self.init(
                .failure,
                DisplayText.harmless(
                    "no pages of '\(name)' are loaded on demand at \(path.map { "'\($0)'" }.joined(separator: " "))\(hint)"
                ))
        case .severalBranches(let name, let more):
            self.init(
                .failure,
                DisplayText.harmless(
                    "'\(name)' has more pages in \(more.total) branches; name one: \(PipelineView.places(more))"))
        case .cannotLoadMore(let name, let reason):
            self.init(.failure, DisplayText.harmless("cannot load more of '\(name)': \(reason)"))
        case .tryLater(let hint):
            self.init(.tryLater, "nothing was started: \(times.retryHint(hint)); --force ignores it")
        case .failed(let name, let reason):
            self.init(.failure, DisplayText.harmless(name.map { "'\($0)': \(reason)" } ?? reason))
        case .busy(let reason): self.init(.tryLater, DisplayText.harmless("try again later: \(reason)"))
        case .notStarted(let reason):
            self.init(.notRunning, DisplayText.harmless("freshetd does not start: \(reason)"))
        case .permissionDenied:
            self.init(
                .notPermitted,
                "permission denied: be root or a member of group freshet ('adduser NAME freshet')")
        case .invalidParameter(let name):
            self.init(
                .failure,
                "the daemon does not accept the parameter '\(DisplayText.harmless(name))'; it may have another version")
        }
    }
}
