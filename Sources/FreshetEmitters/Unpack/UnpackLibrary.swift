package import FreshetPipelines
import FreshetUnpack

/// Whether this machine can unpack answers.
package enum UnpackLibrary {
    /// Why the library that these rules need cannot be loaded, with the remedy; nil: it can, or they need none. It
    /// loads the library, so the daemon does not call it. Blocks.
    ///
    /// - Parameter file: the file of the library.
    package static func problem(
        with rule: UnpackRule, file: String = ArchiveLibrary.file
    ) -> (message: String, remedy: String)? {
        guard rule != .compressed(.gzip), let reason = ArchiveLibrary.loadFailure(file) else { return nil }
        return ("\(file) cannot be loaded: \(reason)", ArchiveLibrary.remedy)
    }
}
