import FreshetControl
import FreshetSystemd
import Glibc

extension DaemonEntry {
    /// The work that a process was started for.
    package enum Work: Sendable {
        /// The daemon, or all pipelines once.
        case service
        /// A check, the files of the configuration, a dry run.
        case reading
        case examination
    }

    /// Makes a process of root one of the service's user (``PrivilegeDrop``). To be called before any thread is started.
    ///
    /// - Parameter options: gets the home of the user, and the files that only root can read.
    /// - Returns: how to end, if root's rights cannot be given up; the reason is on standard error.
    package static func leaveRoot(_ options: inout DaemonOptions, for work: Work) -> DaemonExit? {
        options.readFiles(for: work)
        let purpose: PrivilegeDrop.Purpose =
            switch work {
            case .service: .running
            case .reading: .reading
            case .examination: .examining
            }
        do {
            let directories = try Supervisor.directories(options)
            let user = try PrivilegeDrop.perform(
                for: purpose,
                in: PrivilegeDrop.Directories(
                    state: directories.state, cache: directories.cache, runtime: directories.runtime),
                as: options.user)
            if let home = user?.home {
                options.environment["HOME"] = home
                // Commands get the home of this process.
                setenv("HOME", home, 1)
            }
            return nil
        } catch {
            StandardStream.write("freshetd: \(PlainText.escaping("\(error)"))\n", to: STDERR_FILENO)
            return error is PrivilegeDrop.Failure ? .notPermitted : .failure
        }
    }
}
