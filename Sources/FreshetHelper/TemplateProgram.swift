import Glibc

/// The program in which templates are rendered, a helper like that of jq. It is not a part of `freshetd`, because it
/// links Foundation.
package enum TemplateProgram {
    package static let name = "freshet-template"
    /// The command-line argument that makes the program run as a helper.
    package static let argument = "--template-helper"
    /// The address space of a helper, in bytes: most of it is Foundation's tables, which are never read.
    package static let memoryLimit: UInt64 = 768 << 20

    /// The writable memory of a helper before it has read a request, in bytes. Nearly all of it is the tables of ICU,
    /// 37 MB, which are mapped writable from the program's file and never used.
    package static let baseMemory: UInt64 = 48 << 20

    /// The directories that may have the program, seen from the directory of `freshetd`: of a build, of an installation
    /// (`/usr/sbin` and `/usr/libexec/freshet`), and of distributions without `libexec`.
    private static let directories = [".", "../libexec/freshet", "../lib/freshet"]

    /// The path of the program; nil if it is not installed. Blocks.
    ///
    /// - Parameter daemon: the path of `freshetd`; nil: this process.
    package static func path(besides daemon: String? = nil) -> String? {
        guard let directory = directory(of: daemon ?? ownPath) else { return nil }
        return directories.lazy.map { "\(directory)/\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// Why no template can be rendered, with the remedy; nil: it can. Blocks.
    package static func problem(besides daemon: String? = nil) -> (message: String, remedy: String)? {
        guard path(besides: daemon) == nil else { return nil }
        let directory = directory(of: daemon ?? ownPath) ?? ""
        return (
            "templates cannot be rendered: the program \(name) is neither in \(directory) nor in "
                + "\(directory)/\(directories[1])",
            "install it: it is a part of Freshet, in its own package on some systems"
        )
    }

    /// The path of the running file, which may have been replaced or removed since.
    private static var ownPath: String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    private static func directory(of path: String?) -> String? {
        guard let path, let slash = path.lastIndex(of: "/") else { return nil }
        return slash == path.startIndex ? "" : String(path[..<slash])
    }
}
