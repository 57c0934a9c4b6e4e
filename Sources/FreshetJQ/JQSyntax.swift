/// Whether programs compile.
package enum JQSyntax {
    /// What is wrong with a program, in jq's words; nil if it compiles.
    ///
    /// Compiles it in this very process, about 13 ms: for a process that does nothing else. A daemon has its helper
    /// do it.
    ///
    /// - Parameter variables: the names of those that it may use.
    package static func fault(in program: String, variables: [String] = []) -> String? {
        guard program.utf8.count <= JQRequest.maxProgram else {
            return "it has more than the \(JQRequest.maxProgram) bytes that are possible"
        }
        do throws(JQProgram.Invalid) {
            _ = try JQProgram(program, variables: variables)
            return nil
        } catch {
            return error.message
        }
    }
}
