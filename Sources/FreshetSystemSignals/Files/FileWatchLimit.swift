import FreshetEventLoop
import Glibc

/// Why not all changes of a path can be detected.
enum FileWatchLimit: Hashable, Sendable, CustomStringConvertible {
    /// A call failed.
    case refused(SystemCallError)
    /// A check of the path has not ended for some time.
    case noAnswer

    /// A sentence for people, with the remedy.
    var description: String {
        switch self {
        case .refused(let error): "its changes are not noticed (\(error)): \(Self.remedy(for: error))"
        case .noAnswer:
            "its changes are not noticed (a look at it has not ended): see whether all file systems on the way to it "
                + "answer, such as those of a network"
        }
    }

    private static func remedy(for error: SystemCallError) -> String {
        switch (error.call, error.errno) {
        case ("inotify_init1", EMFILE): "raise fs.inotify.max_user_instances by sysctl(8), or the limit on open files"
        case (_, EMFILE), (_, ENFILE): "raise the limit on open files"
        case ("inotify_add_watch", ENOSPC): "raise fs.inotify.max_user_watches by sysctl(8)"
        case (_, ENOMEM): "the kernel has no memory left"
        case ("inotify_add_watch", EACCES): "the directory has to be readable for this user"
        case ("lstat", EACCES): "the directories on the way have to be searchable for this user"
        case ("open", ELOOP): "its symbolic links lead in a circle"
        default: "see inotify(7)"
        }
    }
}
