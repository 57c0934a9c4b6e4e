import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd

extension CheckHelpers {
    /// Creates the objects that verify signatures and run the programs of checks in a daemon.
    ///
    /// Their files need ``ProgramInputFiles/prepareAll(in:)``.
    init(_ context: DaemonContext) {
        let files = ProgramInputFiles.checks(context.directories)
        let (readers, limiter, log) = (context.readers, context.limiter, context.log)
        self.init(
            verifier: ContentVerifier(workers: context.pools.proofs),
            inspector: CandidateInspector(TrustedPrograms(context), files) { logging, pipeline, command in
                // The output of a check may quote the content.
                guard readers.isPublic(pipeline) else { return }
                logging.logOutput(of: command, of: pipeline, limiter, log)
            })
    }
}
