import FreshetEventLoop
import FreshetRender
import Glibc

/// Refuses an edit by root of a file that another user could replace. `freshetd` started by root does not read such a
/// file either, and a link in such a directory could lead the edit to any file of root's.
enum EditTrust {
    /// Checks a path, the directories above it, and the links on the way (``PathTrust``). A path that does not exist is
    /// checked as far as it exists.
    ///
    /// - Parameters:
    ///   - path: the file to edit; a relative path begins at the working directory.
    ///   - user: the effective user of this process. Users other than root are not checked: an edit by them can replace
    ///     only their own files.
    static func check(_ path: String, user: UInt32) throws(CommandFailure) {
        guard user == 0 else { return }
        do throws(PathTrust.ValidationError) {
            try PathTrust(user: 0, isPersonal: false).check(absolute(path), as: .configuration)
        } catch {
            let remedy = error.remedy.map { "; remedy: \($0)" } ?? ""
            throw CommandFailure(
                .notPermitted,
                DisplayText.harmless("root does not edit '\(path)': \(error.message)\(remedy)"))
        }
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        return "\(String(cString: directory))/\(path)"
    }
}
