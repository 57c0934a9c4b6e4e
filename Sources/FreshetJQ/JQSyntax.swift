import FreshetHelper

/// Whether programs compile.
package enum JQSyntax {
    /// jq's message about an error in a program; nil if the program compiles.
    ///
    /// Compiles the program in the calling process, in about 13 ms, so it is for short-lived processes. The daemon lets
    /// a helper compile programs.
    ///
    /// - Parameter variables: the names of the variables that the program may use.
    package static func error(in program: String, variables: [String] = []) -> String? {
        guard program.utf8.count <= HelperRequest.maxProgram else {
            return "it exceeds the limit of \(HelperRequest.maxProgram) bytes"
        }
        do throws(JQProgram.Invalid) {
            _ = try JQProgram(program, variables: variables)
            return nil
        } catch {
            return error.message
        }
    }
}
