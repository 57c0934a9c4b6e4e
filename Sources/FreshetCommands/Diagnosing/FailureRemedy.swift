import FreshetControl

/// The remedy that fits the failure of a run: what to know, and a command.
struct FailureRemedy: Hashable {
    var text: String?
    var command: String

    /// - Returns: nil if nothing fits better than the journal.
    init?(for message: String, _ facts: Diagnosis.Facts, _ times: Times) {
        let pipeline = facts.pipeline
        let name = pipeline.name
        switch Self.status(in: message) {
        case 404?, 410?:
            self.init(
                text: "The origin has nothing at this URL: \(facts.wiring.source)", command: "freshetctl edit \(name)")
        case 401?, 403?:
            guard !message.contains("with an access token from ") else {
                self.init(
                    text: "The token server has accepted the client, and the origin refuses the token.",
                    command: "freshetctl edit \(name)")
                return
            }
            guard message.contains("the credential") else {
                self.init(text: "The request has no credential.", command: "freshetctl edit \(name)")
                return
            }
            self.init(ofCredentials: facts, times)
        case 429?:
            let until = (pipeline.waitingUntil ?? pipeline.nextRun?.at).map {
                "The next attempt is \(times.absolute($0)) (\(times.relative($0)))."
            }
            self.init(
                text: until ?? "The origin limits the number of requests.",
                command: "freshetctl refresh \(name) --force --wait")
        default:
            self.init(ofConnection: message)
        }
    }

    /// Names the secrets that the origin refuses: their names, the files that they were read from, and the age of
    /// these.
    private init(ofCredentials facts: Diagnosis.Facts, _ times: Times) {
        let files = facts.wiring.credentials ?? []
        guard !files.isEmpty else {
            self.init(
                text: "The service read its credentials \(times.past(facts.daemon.since)).",
                command: "systemctl restart freshetd")
            return
        }
        let texts = files.map { file in
            let written = file.written.map { "written \(times.past($0))" } ?? "which does not exist"
            let place = file.path.map { "\($0), \(written)" } ?? "the service has no credentials"
            return file.name.map { "credential '\($0)': \(place)" } ?? "credential file \(place)"
        }
        // systemd passes a new file only at a start; all other files are read again.
        let isFromManager = files.contains { $0.path?.hasPrefix("/run/credentials/") ?? true }
        self.init(
            text: "The request has the \(texts.joined(separator: "; the ")).",
            command: isFromManager
                ? "systemctl restart freshetd" : "freshetctl refresh \(facts.pipeline.name) --wait")
    }

    private init(text: String?, command: String) {
        self.text = text
        self.command = command
    }

    private init?(ofConnection message: String) {
        if let host = Self.word(after: "the certificate of ", in: message) {
            self.init(
                text: "The command shows the certificate, its issuer and its dates.",
                command: "openssl s_client -connect \(host.contains(":") ? host : "\(host):443") </dev/null "
                    + "| openssl x509 -noout -subject -issuer -dates")
        } else if message.contains("could not resolve the proxy") {
            self.init(text: "The name of the proxy is in /etc/default/freshetd.", command: "systemctl cat freshetd")
        } else if let host = Self.word(after: "could not resolve ", in: message) {
            self.init(text: "The command shows what the resolver answers.", command: "resolvectl query \(host)")
        } else if let host = Self.word(after: "could not connect to ", in: message), host != "the",
            message.contains("unreachable") || message.contains("No route")
        {
            self.init(
                text: "There is no route to \(host): to wait for one, set refresh.needs-network to its address.",
                command: "getent ahosts \(host)")
        } else {
            return nil
        }
    }

    /// The status in `the origin answered 404 Not Found`.
    private static func status(in message: String) -> Int? {
        word(after: "the origin answered ", in: message).flatMap { Int($0) }
    }

    /// The word behind a text. Only the characters of hosts and numbers are returned: the word becomes a part of a
    /// command.
    private static func word(after text: String, in message: String) -> String? {
        guard let range = message.firstRange(of: text) else { return nil }
        let word = message[range.upperBound...].prefix {
            $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == ":" || $0 == "_")
        }
        let host = word.hasSuffix(":") ? word.dropLast() : word
        return host.isEmpty || host.hasPrefix("-") ? nil : String(host)
    }
}
