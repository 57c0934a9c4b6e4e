import FreshetConfiguration
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import FreshetSystemd
import Glibc

/// Where the configuration is, and how it is read.
enum ConfigurationLocation {
    /// The loader for the directories of ``searchPath(_:user:exists:)``.
    static func loader(_ options: DaemonOptions) -> ConfigurationLoader {
        ConfigurationLoader(
            searchPath: searchPath(options),
            context: LoadContext(
                defaultSignals: options.isSystemService ? StandardSignal.systemDefault : StandardSignal.userDefault,
                busError: BusMatch.error(of:)),
            fileSystem: options.copies.isEmpty
                ? fileSystem(options)
                : SubstitutingFileSystem(fileSystem(options), copies: options.copiedContents))
    }

    /// The files of this machine; in a process that root started, only files that no other user can change.
    static func fileSystem(_ options: DaemonOptions) -> any ConfigurationFileSystem {
        if let recorded = options.recordedFiles { return recorded }
        guard options.invoker == 0 else { return HostFileSystem() }
        return GuardedFileSystem(HostFileSystem()) { path in
            trustError(path, PathTrust.Lookups())
        } checkOfOneLoad: {
            let lookups = PathTrust.Lookups()
            return { path in trustError(path, lookups) }
        }
    }

    private static func trustError(_ path: String, _ lookups: PathTrust.Lookups) -> FileError? {
        do throws(PathTrust.ValidationError) {
            try lookups.check(DaemonOptions.absolute(path), by: PathTrust(user: 0, isPersonal: false))
            return nil
        } catch {
            return FileError(message: "root does not read this configuration: \(error.message)", remedy: error.remedy)
        }
    }

    /// The configuration directories: those of the flags or the environment; otherwise the user's own directory, if it
    /// exists and the user is not root; otherwise the system's directories.
    ///
    /// - Parameters:
    ///   - user: nil: ``DaemonOptions/owner``.
    ///   - exists: whether a path exists.
    static func searchPath(
        _ options: DaemonOptions, user: UInt32? = nil, exists: (String) -> Bool = { access($0, F_OK) == 0 }
    ) -> SearchPath {
        let user = user ?? options.owner
        let own = user == 0 ? nil : ownConfiguration(options.environment, user)
        return SearchPath(
            flags: options.configurationDirectories,
            configurationDirectory: options.environment["CONFIGURATION_DIRECTORY"],
            own: own.flatMap { exists($0) ? $0 : nil })
    }

    /// The configuration directory of a user, the same as in the user's unit; nil: it is unknown.
    private static func ownConfiguration(_ environment: [String: String], _ user: UInt32) -> String? {
        var environment = environment
        // Set, because a lack of the other directories must not cause an error here.
        for variable in ["STATE_DIRECTORY", "CACHE_DIRECTORY"] { environment[variable] = "/" }
        return try? ServiceDirectories(name: "freshet", environment: environment, userID: user).configuration.first
    }
}
