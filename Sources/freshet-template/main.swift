// The helper process of freshetd that renders templates. It is a separate program because it links Foundation.
import FreshetHelper
import FreshetTemplate
import Glibc

guard CommandLine.arguments.dropFirst().first == TemplateProgram.argument else {
    let message = "freshet-template: only freshetd starts this program; see freshet.pipeline(5), transform.template\n"
    _ = Array(message.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(64)
}
TemplateHelper.main()
