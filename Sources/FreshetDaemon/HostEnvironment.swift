import FreshetConfiguration
import FreshetEmitters
import FreshetPipelines
import FreshetSystemd
import Glibc

/// What a configuration needs of the service's surroundings: the credentials that it names, with their secrets, and
/// groups. Made anew with each configuration.
struct HostEnvironment: Sendable {
    /// The secrets by the names of their credentials.
    private(set) var secrets: [String: String] = [:]
    /// The paths of those that are files, by their names.
    private(set) var credentialFiles: [String: String] = [:]
    /// The secrets that are `user:password`.
    private var pairs: Set<String> = []
    private(set) var faults: [HostEnvironmentError] = []
    /// The numbers of the groups that `cache.group` names.
    private(set) var groups: [String: UInt32] = [:]
    /// What a pipeline can do without.
    private(set) var warnings: [HostEnvironmentError] = []

    /// Who reads credentials, and so what it means that one is not there.
    enum Reader {
        /// Whoever was handed them.
        case service
        /// Root, who looks at those of the service.
        case root
        /// Somebody who may not look at those.
        case somebody

        fileprivate func text(of error: CredentialError, for name: String) -> (message: String, remedy: String) {
            switch (self, error.reason) {
            case (.root, .missing):
                ("the service does not run, or runs without the credential '\(error.name)'", error.remedy)
            case (.somebody, .missing):
                (
                    "only root may read the credential '\(error.name)' of the service",
                    "try it as root: sudo freshetctl run \(name) --dry-run"
                )
            default: (error.message, error.remedy)
            }
        }
    }

    /// As the service itself sees them, or whoever tries a pipeline beside it. Blocks on files and the name service.
    init(
        of configuration: Configuration, _ credentials: Credentials, readBy reader: Reader = .service,
        _ trust: PathTrust
    ) {
        for definition in configuration.pipelines {
            for needed in definition.credentials {
                do throws(CredentialError) {
                    if needed.content == .file {
                        credentialFiles[needed.name] = try credentials.file(named: needed.name)
                        continue
                    }
                    if secrets[needed.name] == nil {
                        secrets[needed.name] = try credentials.secret(named: needed.name)
                    }
                    if let secret = secrets[needed.name] { check(secret, is: needed, of: definition) }
                } catch {
                    let text = reader.text(of: error, for: definition.name)
                    note(definition, needed.keys, text.message, text.remedy)
                }
            }
            noteHidden(definition) { Self.isHidden($0) }
            noteHooks(definition, trust)
            noteChecks(definition, trust)
            guard let name = definition.cache.group else { continue }
            guard let group = SystemGroup(named: name) else {
                noteNoGroup(name, definition)
                continue
            }
            groups[name] = group.identifier
            guard !group.isOwn else { continue }
            note(
                definition, ["cache", "group"], "the service's user is not in the group '\(name)'",
                "add SupplementaryGroups=\(name) below [Service] by 'systemctl edit freshetd', and restart the service")
        }
    }

    /// As far as somebody beside the service can tell: only root sees what credentials it runs with.
    init(checking configuration: Configuration, environment: [String: String], isRoot: Bool, _ trust: PathTrust) {
        let handed = Credentials(environment: environment)
        let credentials =
            handed.directory == nil && isRoot ? Credentials(directory: "/run/credentials/freshetd.service") : handed
        for definition in configuration.pipelines {
            for needed in definition.credentials where credentials.directory != nil {
                do throws(CredentialError) {
                    if needed.content == .file {
                        _ = try credentials.file(named: needed.name)
                    } else {
                        check(try credentials.secret(named: needed.name), is: needed, of: definition)
                    }
                } catch {
                    let text = Reader.root.text(of: error, for: definition.name)
                    note(definition, needed.keys, text.message, text.remedy)
                }
            }
            if isRoot { noteHidden(definition) { _ in true } }
            noteHooks(definition, trust)
            noteChecks(definition, trust)
            if let name = definition.cache.group, SystemGroup(named: name) == nil { noteNoGroup(name, definition) }
        }
    }

    /// Notes a secret that is not what the pipeline does with it.
    private mutating func check(_ secret: String, is needed: NeededCredential, of definition: PipelineDefinition) {
        guard needed.content == .userAndPassword else { return }
        pairs.insert(needed.name)
        guard BasicCredentials.encoded(secret) == nil else { return }
        note(
            definition, needed.keys, "the credential '\(needed.name)' is not of the form user:password",
            "mend the file that LoadCredential= names, and restart the service")
    }

    /// All that must not be shown, wherever it comes from.
    func hidden(with configuration: Configuration) -> Set<String> {
        var hidden = Set(configuration.pipelines.flatMap(\.plainSecrets))
        for (name, secret) in secrets {
            hidden.insert(secret)
            if pairs.contains(name) {
                // What the origin sees of it, and what it may take it apart into.
                for part in [BasicCredentials.encoded(secret), BasicCredentials.password(secret)].compactMap({ $0 }) {
                    hidden.insert(part)
                }
            }
            // Of a whole `Basic abc` the last word is the secret.
            if let last = secret.split(separator: " ").dropFirst().last { hidden.insert(String(last)) }
        }
        return hidden
    }

    /// What `ProtectHome=` is about (systemd.exec(5)).
    private static let homes = ["/home", "/root", "/run/user"]

    /// Whether it was covered by a directory that nobody may look into, as `ProtectHome=yes` does.
    private static func isHidden(_ home: String) -> Bool {
        var status = stat()
        return stat(home, &status) == 0 && status.st_mode & 0o777 == 0
    }

    private mutating func noteHidden(_ definition: PipelineDefinition, _ isHidden: (String) -> Bool) {
        for path in definition.refresh.files {
            guard let home = Self.homes.first(where: { path == $0 || path.hasPrefix("\($0)/") }), isHidden(home) else {
                continue
            }
            warnings.append(
                HostEnvironmentError(
                    pipeline: definition.name, keys: ["refresh", "files"],
                    message: "the service does not see '\(path)': its unit has ProtectHome=yes",
                    remedy: "put the file elsewhere, or write ProtectHome=read-only below [Service] by "
                        + "'systemctl edit freshetd', and restart the service"))
        }
    }

    /// A hook that would not be run now. It is looked at again before each run: what is put into place later need not be
    /// told here.
    private mutating func noteHooks(_ definition: PipelineDefinition, _ trust: PathTrust) {
        for (place, hook) in definition.hooks.enumerated() {
            noteProgram(of: hook.command, "hook", ["on-change", "\(place)", "exec"], definition, trust)
        }
    }

    private mutating func noteProgram(
        of command: [String], _ what: String, _ keys: [String], _ definition: PipelineDefinition, _ trust: PathTrust
    ) {
        guard let path = command.first else { return }
        do throws(PathTrust.ValidationError) {
            try trust.check(path)
        } catch {
            warnings.append(
                HostEnvironmentError(
                    pipeline: definition.name, keys: keys,
                    message: error.isMissing
                        ? "the \(what)'s program is not there: \(error.message)"
                        : "the \(what) would not be run: \(error.message)", remedy: error.remedy))
        }
    }

    /// A check that cannot be made now. What it needs is looked at again each time.
    private mutating func noteChecks(_ definition: PipelineDefinition, _ trust: PathTrust) {
        if let rule = definition.check.exec {
            noteProgram(of: rule.command, "check", ["check", "exec"], definition, trust)
        }
        guard case .file(let path)? = definition.check.minisign?.key else { return }
        do throws(KeyFileError) {
            _ = try MinisignKey(contentsOf: path)
        } catch {
            warnings.append(
                HostEnvironmentError(
                    pipeline: definition.name, keys: ["check", "minisign", "key-file"], message: error.message,
                    remedy: "put the publisher's key there, as 'minisign -G' writes it, readable by the service"))
        }
    }

    private mutating func noteNoGroup(_ name: String, _ definition: PipelineDefinition) {
        note(
            definition, ["cache", "group"], "there is no group '\(name)' on this machine",
            "'groupadd --system \(name)' makes it")
    }

    private mutating func note(_ definition: PipelineDefinition, _ keys: [String], _ message: String, _ remedy: String)
    {
        faults.append(HostEnvironmentError(pipeline: definition.name, keys: keys, message: message, remedy: remedy))
    }
}
