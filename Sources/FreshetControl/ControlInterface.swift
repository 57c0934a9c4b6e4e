/// The Varlink interface of the control socket.
package enum ControlInterface {
    package static let name = "io.freshet.Control"

    /// The text of `varlink/io.freshet.Control.varlink`, to which a link in this folder points. The package embeds it
    /// in the program, so that an installed program needs no file beside it.
    package static let description = String(
        decoding: PackageResources.io_freshet_Control_varlink, as: UTF8.self)
}
