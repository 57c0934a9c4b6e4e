import FreshetConfiguration
import FreshetEmitters
import FreshetEventLoop
import FreshetHelper
import FreshetModel
import FreshetPipelines
import FreshetSystemd
import Glibc

/// The parts of the service's environment that a configuration needs: the credentials that it names, with their
/// secrets, and groups. Each loaded configuration gets a new value.
struct HostEnvironment: Sendable {
    /// The secrets by the names of their credentials.
    private(set) var secrets: [String: String] = [:]
    /// The paths of the credentials that are used as files, by their names.
    private(set) var credentialFiles: [String: String] = [:]
    /// The secrets that are `user:password`.
    private var pairs: Set<String> = []
    private(set) var errors: [HostEnvironmentError] = []
    /// The numbers of the groups that `cache.group` names.
    private(set) var groups: [String: UInt32] = [:]
    /// Problems that do not keep a pipeline from running.
    private(set) var warnings: [HostEnvironmentError] = []
    /// The credentials that a process outside the service could not look for.
    private(set) var uncheckedCredentials: Set<String> = []
    /// The groups of which that process does not know whether the service's user is a member.
    private(set) var uncheckedGroups: Set<String> = []

    /// The process that reads credentials. It decides how an error message explains a missing credential.
    enum Reader {
        /// The process that received the credentials from the service manager.
        case service
        /// Root, reading the credentials of the service.
        case root
        /// Another user, who may not read the credentials of the service.
        case otherUser

        fileprivate func text(of error: CredentialError, for name: String) -> (message: String, remedy: String) {
            switch (self, error.reason) {
            case (.root, .missing):
                ("the service does not run, or runs without the credential '\(error.name)'", error.remedy)
            case (.otherUser, .missing):
                (
                    "only root may read the credential '\(error.name)' of the service",
                    "try it as root: sudo freshetctl run \(name) --dry-run"
                )
            default: (error.message, error.remedy)
            }
        }
    }

    /// The environment as the service itself or a dry run sees it. Blocks on files and on the name service.
    init(
        of configuration: Configuration, _ credentials: Credentials, readBy reader: Reader = .service,
        _ trust: PathTrust
    ) {
        for definition in configuration.pipelines {
            for needed in definition.credentials {
                if needed.isPath {
                    readFile(of: needed, of: definition)
                    continue
                }
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
                    addError(definition, needed.keys, text.message, text.remedy)
                }
            }
            if definition.template != nil, let problem = TemplateProgram.problem() {
                addError(definition, ["transform", "template"], problem.message, problem.remedy)
            }
            warnHidden(definition) { Self.isHidden($0) }
            warnHooks(definition, trust)
            warnChecks(definition, trust)
            checkZones(of: definition)
            guard let name = definition.cache.group else { continue }
            guard let group = SystemGroup(named: name) else {
                warnNoGroup(name, definition)
                continue
            }
            groups[name] = group.identifier
            guard !group.isOwn else { continue }
            addNoMember(name, definition)
        }
        warnSharedHooks(of: configuration, trust)
    }

    /// The environment as a process outside the service sees it, for `--check`. ``uncheckedCredentials`` and
    /// ``uncheckedGroups`` get what this process cannot see.
    ///
    /// - Parameters:
    ///   - isRoot: whether the process belongs to root or to the user of the system's service. Only these see the
    ///     service's credentials.
    ///   - service: the process of the service.
    init(
        checking configuration: Configuration, environment: [String: String], isRoot: Bool,
        service: ServiceProcess.Search, _ trust: PathTrust
    ) {
        let credentials = Self.credentials(environment, isRoot: isRoot, service)
        for definition in configuration.pipelines {
            for needed in definition.credentials where !needed.isPath {
                guard credentials.directory != nil else {
                    uncheckedCredentials.insert(needed.name)
                    continue
                }
                do throws(CredentialError) {
                    if needed.content == .file {
                        _ = try credentials.file(named: needed.name)
                    } else {
                        check(try credentials.secret(named: needed.name), is: needed, of: definition)
                    }
                } catch {
                    addError(definition, needed.keys, error.message, error.remedy)
                }
            }
            if isRoot { warnHidden(definition) { _ in true } }
            warnNeverAgain(definition)
            warnHooks(definition, trust)
            warnChecks(definition, trust)
            checkZones(of: definition)
            checkGroup(of: definition, isRoot: isRoot, service)
        }
        warnSharedHooks(of: configuration, trust)
    }

    /// The credentials of the service; without a directory if this process cannot see whether there are any.
    private static func credentials(
        _ environment: [String: String], isRoot: Bool, _ service: ServiceProcess.Search
    ) -> Credentials {
        let handed = Credentials(environment: environment)
        guard handed.directory == nil, isRoot else { return handed }
        let directory = "/run/credentials/\(service.process?.unit ?? ServiceProcess.standardUnit)"
        // Without the service, there is no directory; a service without credentials has none either.
        return Credentials(directory: service.process != nil || access(directory, F_OK) == 0 ? directory : nil)
    }

    /// Adds an error if the running service cannot give files to the group of a pipeline.
    private mutating func checkGroup(
        of definition: PipelineDefinition, isRoot: Bool, _ service: ServiceProcess.Search
    ) {
        guard let name = definition.cache.group else { return }
        guard let group = SystemGroup(named: name) else { return warnNoGroup(name, definition) }
        if let process = service.process {
            guard process.user != 0, !process.groups.contains(group.identifier) else { return }
            addNoMember(name, definition)
        } else if !isRoot || !group.isOwn {
            // A process that root started has the groups of the service's user in the user database.
            uncheckedGroups.insert(name)
        }
    }

    /// Reads the secret in a file, so that it is redacted from the start. The file is read again for each request, and
    /// may be written later, so that an obstacle is a warning.
    private mutating func readFile(of needed: NeededCredential, of definition: PipelineDefinition) {
        let obstacle: String
        do throws(RunFailure) {
            let content = try SecretFileReader.read(needed.name, isGuarded: true)
            do throws(CredentialError) {
                let secret = try Credentials.secret(in: content, needed.name)
                secrets[needed.name] = secret
                if needed.content == .userAndPassword { pairs.insert(needed.name) }
                return
            } catch {
                obstacle = error.description
            }
        } catch {
            obstacle = error.message
        }
        warnings.append(
            HostEnvironmentError(
                pipeline: definition.name, keys: needed.keys, message: obstacle,
                remedy: "each request reads the file again"))
    }

    /// Adds an error if the form of a secret does not fit its use in the pipeline.
    private mutating func check(_ secret: String, is needed: NeededCredential, of definition: PipelineDefinition) {
        guard needed.content == .userAndPassword else { return }
        pairs.insert(needed.name)
        guard BasicCredentials.encoded(secret) == nil else { return }
        addError(
            definition, needed.keys, "the credential '\(needed.name)' is not of the form user:password",
            "repair the file that LoadCredential= names, and restart the service")
    }

    /// All values that must be redacted, from credentials and from the configuration.
    func hidden(with configuration: Configuration) -> Set<String> {
        var hidden = Set(configuration.pipelines.flatMap(\.plainSecrets))
        for (name, secret) in secrets {
            hidden.formUnion(pairs.contains(name) ? SecretReader.forms(of: secret) : [secret])
            // In a value such as `Basic abc`, the last word is the secret.
            if let last = secret.split(separator: " ").dropFirst().last { hidden.insert(String(last)) }
        }
        return hidden
    }

    /// The directories that `ProtectHome=` hides (systemd.exec(5)).
    private static let homes = ["/home", "/root", "/run/user"]

    /// Whether a directory without any permission covers this one, as with `ProtectHome=yes`.
    private static func isHidden(_ home: String) -> Bool {
        var status = stat()
        return stat(home, &status) == 0 && status.st_mode & 0o777 == 0
    }

    private mutating func warnHidden(_ definition: PipelineDefinition, _ isHidden: (String) -> Bool) {
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

    /// Adds a warning for each hook whose program cannot be run now. The program is checked again before each run, so
    /// it may be installed later.
    private mutating func warnHooks(_ definition: PipelineDefinition, _ trust: PathTrust) {
        for (index, hook) in definition.hooks.enumerated() {
            warnProgram(of: hook.command, "hook", ["on-change", "\(index)", "exec"], definition.name, trust)
        }
    }

    private mutating func warnSharedHooks(of configuration: Configuration, _ trust: PathTrust) {
        for hook in configuration.hooks {
            warnProgram(of: hook.action.command, "hook", ["exec"], hook.name, isHook: true, trust)
        }
    }

    private mutating func warnProgram(
        of command: [String], _ what: String, _ keys: [String], _ owner: String, isHook: Bool = false,
        _ trust: PathTrust
    ) {
        guard let path = command.first else { return }
        do throws(PathTrust.ValidationError) {
            try trust.check(path)
        } catch {
            warnings.append(
                HostEnvironmentError(
                    pipeline: owner, isHook: isHook, keys: keys,
                    message: error.isMissing
                        ? "the \(what) cannot be run, its program does not exist: \(error.message)"
                        : "the \(what) cannot be run: \(error.message)", remedy: error.remedy))
        }
    }

    /// Adds a warning for each check that cannot be made now. Its program and key are checked again each time.
    private mutating func warnChecks(_ definition: PipelineDefinition, _ trust: PathTrust) {
        if let rule = definition.check.exec {
            warnProgram(of: rule.command, "check", ["check", "exec"], definition.name, trust)
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

    /// The directory of links to the timers that are enabled (systemd.unit(5)).
    private static let enabledTimers = "/etc/systemd/system/timers.target.wants"

    /// Adds a warning for a pipeline that nothing runs again after the start of the daemon.
    private mutating func warnNeverAgain(_ definition: PipelineDefinition) {
        let policy = definition.refresh
        guard policy.on.isSubset(of: [.start, .reload]), !policy.isPlanned, policy.files.isEmpty, policy.dbus.isEmpty,
            policy.after.isEmpty, definition.parameters.isEmpty, definition.fleet == nil,
            access("\(Self.enabledTimers)/freshet-refresh@\(definition.name).timer", F_OK) != 0
        else { return }
        warnings.append(
            HostEnvironmentError(
                pipeline: definition.name, keys: ["refresh", "on"],
                message: policy.on.isEmpty
                    ? "nothing runs the pipeline but 'freshetctl refresh'"
                    : "nothing runs the pipeline again after a start or a reload but 'freshetctl refresh'",
                remedy: "add times: every: 1h; or enable a timer: systemctl enable --now "
                    + "freshet-refresh@\(definition.name).timer"))
    }

    /// Adds an error for each time zone that this machine does not have.
    private mutating func checkZones(of definition: PipelineDefinition) {
        for event in definition.refresh.calendar {
            guard let zone = event.zone, !ZoneFiles.exists(zone) else { continue }
            addError(
                definition, ["refresh", CalendarEvent.isWord(event.text) ? "every" : "at"],
                "there is no time zone '\(zone)' on this machine",
                "write a name that 'timedatectl list-timezones' lists, or install the package tzdata")
        }
    }

    private mutating func warnNoGroup(_ name: String, _ definition: PipelineDefinition) {
        addError(
            definition, ["cache", "group"], "there is no group '\(name)' on this machine",
            "create it with 'groupadd --system \(name)'")
    }

    private mutating func addNoMember(_ name: String, _ definition: PipelineDefinition) {
        addError(
            definition, ["cache", "group"], "the service's user is not in the group '\(name)'",
            "add SupplementaryGroups=\(name) below [Service] by 'systemctl edit freshetd', and restart the service")
    }

    private mutating func addError(
        _ definition: PipelineDefinition, _ keys: [String], _ message: String, _ remedy: String
    ) {
        errors.append(HostEnvironmentError(pipeline: definition.name, keys: keys, message: message, remedy: remedy))
    }
}
