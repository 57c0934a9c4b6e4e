import FreshetControl
import FreshetSystemd
import Glibc

extension DaemonEntry {
    /// The kind of work of a process.
    package enum Work: Sendable {
        /// The daemon, or one run of all pipelines.
        case service
        /// A check of the configuration, its output, or a dry run.
        case reading
        case examination
    }

    /// Turns a process of root into a process of the service's user (``PrivilegeDrop``). Call it before any thread
    /// starts.
    ///
    /// - Parameter options: receives the user's home directory, and the files that only root can read.
    /// - Returns: the exit status if the process cannot give up root's rights; the reason is on standard error.
    package static func dropRoot(_ options: inout DaemonOptions, for work: Work) -> DaemonExit? {
        options.readFiles(for: work)
        let purpose: PrivilegeDrop.Purpose =
            switch work {
            case .service: .running
            case .reading: .reading
            case .examination: .examining
            }
        do {
            let directories = try DaemonDirectories.find(options)
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
