/// The description of `io.freshet.Control`, the same text as `varlink/io.freshet.Control.varlink`.
///
/// It is embedded because an installed program should need no resource beside it; a test holds the two together.
package enum ControlInterface {
    package static let name = "io.freshet.Control"

    package static let description = """
        # Inspects and controls freshetd.
        #
        # Instants are microseconds since 1970-01-01 00:00 UTC by the wall clock; durations, whose names end in USec,
        # are microseconds; sizes are bytes. A field that is null or absent has no value. Later versions may add fields
        # to types and replies; a client ignores fields that it does not know.
        #
        # Every client that can connect may read. Refresh, LoadMore, SetParameters, Hold, Release, Rollback, Accept,
        # Pin, Unpin, FireSignal, SetLogLevel, Examine, ListUnowned and Prune are for root, the group freshet, and the
        # daemon's own user if that is an ordinary user; Reload is for these and always for the daemon's own user. All
        # others get org.varlink.service.PermissionDenied.
        interface io.freshet.Control

        # The activity of a pipeline. A held pipeline does not run until Release. The state is independent of the
        # published copy, which is in Pipeline.generation.
        type State (idle, waiting, loading, loaded, failed, held)

        # The reason why a pipeline waits: the network is not reachable, a burst of signals has not ended, the time of
        # the next attempt has not come, the request budget is used up, there is no permit for another request (permit),
        # there is not enough memory for its jq programs, the machine is about to sleep, or a file system does not
        # answer.
        type WaitingFor (network, quiet, backoff, budget, permit, memory, sleep, filesystem)

        # The age of the published copy. It is stale if its next planned check is overdue, if the time that its origin
        # stated has passed, or if it is behind (see Generation). It is expired if it is past its maximum age, withdrawn
        # or not, or past the expiry time that its content states.
        type Freshness (fresh, stale, expired)

        # The result of a run. A failed, superseded or cancelled run does not change the copy.
        type Outcome (changed, unchanged, failed, superseded, cancelled)

        # A committed copy. The permissions of the file at path decide who can read it; ReadGeneration sends its
        # content. Truncated is true if the source has more pages than pages.max allows. Behind is true if the source
        # has other content, which does not replace this copy because the copy was rolled back or is pinned. PinnedSince
        # is null if the copy is not pinned. If the pipeline has several files, directory is the link to their
        # directory, and the file at path has all of them as one JSON object.
        type Generation (
          number: int,
          size: int,
          digest: string,
          committedAt: int,
          path: string,
          mediaType: ?string,
          truncated: ?bool,
          behind: ?bool,
          pinnedSince: ?int,
          directory: ?string,
          comment: ?string
        )

        # A generation that is not published because it is past its maximum age; its content is kept. Since is the time
        # of the withdrawal.
        type WithdrawnCopy (
          number: int,
          size: int,
          digest: string,
          committedAt: int,
          since: int
        )

        # A present or former generation. Kept is true if its content still exists. The causes and the duration of its
        # run are null if they are not known. Withdrawn is true for the generation that would be current if it were not
        # too old.
        type PastGeneration (
          number: int,
          committedAt: int,
          size: int,
          digest: string,
          causes: ?string,
          durationUSec: ?int,
          truncated: ?bool,
          kept: bool,
          current: bool,
          withdrawn: ?bool
        )

        # The last content that a check rejected, and the reason. The content is kept for a week.
        type Candidate (
          digest: string,
          size: int,
          rejectedAt: int,
          reason: string
        )

        # A signal that caused a run: the number of its firings, the times of the first and the last one, and a
        # description. Number is that of the last firing, as in events; it is null for a signal of a single pipeline,
        # such as its timer.
        type Cause (
          signal: string,
          number: ?int,
          count: int,
          first: int,
          last: int,
          detail: ?string
        )

        # One execution of a pipeline. A run without an outcome is in progress.
        type Run (
          number: int,
          started: int,
          causes: []Cause,
          durationUSec: ?int,
          outcome: ?Outcome,
          generation: ?int,
          failure: ?string
        )

        # The time of the next automatic run, and its reason.
        type NextRun (
          at: int,
          reason: string
        )

        # The failure of a pipeline: the error, the time of the first failure, and the number of attempts.
        type Failure (
          message: string,
          since: int,
          attempts: int
        )

        # A request budget, and the number of requests in the last period.
        type Budget (
          limit: int,
          periodUSec: int,
          used: int
        )

        # A parameter of a pipeline: its value and its default. Both are null if the name indicates a secret. Choices or
        # the pattern define the allowed values. A change takes effect after quietUSec without another change.
        type Parameter (
          name: string,
          value: ?string,
          default: ?string,
          isSet: bool,
          choices: ?[]string,
          pattern: ?string,
          quietUSec: int
        )

        # A branch that fails: the keys that lead to it, the error, the time of the first failure, and the number of
        # consecutive failed runs.
        type BranchFailure (
          path: []string,
          message: string,
          since: int,
          attempts: int
        )

        # The branches of a pipeline, if some of them fail: the number of all, the number of failed ones, and the first
        # failed ones.
        type Branches (
          total: int,
          failed: int,
          failing: []BranchFailure
        )

        # A branch for which further pages can be loaded: the keys that lead to it, which are empty for the pipeline's
        # own pages, and the number of pages in the copy.
        type MorePlace (
          path: []string,
          pages: int
        )

        # The branches for which further pages can be loaded: their number, and the first of them.
        type MorePages (
          total: int,
          places: []MorePlace
        )

        # A pending hook: it has not succeeded yet for the published generation. Attempts is the number of failed
        # attempts for this generation. Since is the time of the first failure after the last success, or null without a
        # failure. Next is the time of the next attempt; it is null while the hook runs or waits to run.
        type PendingHook (
          hook: string,
          generation: int,
          running: bool,
          attempts: int,
          since: ?int,
          error: ?string,
          next: ?int
        )

        # A pipeline. Source has no secrets: user information and query are left out. Path describes the network path to
        # the source, or the reason why it is not reachable; it is null for a source that needs no network.
        # WaitingDetail is more information about the wait, such as the origin whose request limit is reached.
        # LoadedBytes and totalBytes are for the run in progress; totalBytes is null while it is not known.
        # OriginExpires is the end of the freshness that the origin stated, expires the time at which the copy is past
        # its maximum age, contentExpires the expiry time that the content states (check.valid-until,
        # check.made-within). Generation is null while the copy is withdrawn. HeldSince is set as soon as the pipeline
        # is held, also while its last run ends. LastRun may be from before the start of the daemon: then its causes
        # have no details, and have the time of the run.
        type Pipeline (
          name: string,
          description: ?string,
          source: string,
          state: State,
          waitingFor: ?WaitingFor,
          waitingUntil: ?int,
          waitingDetail: ?string,
          loadedBytes: ?int,
          totalBytes: ?int,
          loadedPages: ?int,
          endedBranches: ?int,
          knownBranches: ?int,
          freshness: ?Freshness,
          generation: ?Generation,
          lastCheck: ?int,
          originExpires: ?int,
          expires: ?int,
          contentExpires: ?int,
          lastRun: ?Run,
          lastCauses: []Cause,
          nextRun: ?NextRun,
          failure: ?Failure,
          candidate: ?Candidate,
          budget: ?Budget,
          branches: ?Branches,
          more: ?MorePages,
          needsNetwork: bool,
          path: ?string,
          parameters: ?[]Parameter,
          hooks: ?[]PendingHook,
          withdrawn: ?WithdrawnCopy,
          heldSince: ?int
        )

        # A summary of a pipeline, for a line of a list: its state, and the number, the size and the flags of the
        # published copy. Withdrawn is the number of a withdrawn generation. Causes are the signals of the last run.
        # HookFails is true if the last attempt of a pending hook failed.
        type Summary (
          name: string,
          state: State,
          waitingFor: ?WaitingFor,
          freshness: ?Freshness,
          generation: ?int,
          size: ?int,
          truncated: ?bool,
          behind: ?bool,
          pinned: ?bool,
          withdrawn: ?int,
          lastCheck: ?int,
          nextRun: ?int,
          causes: []string,
          hookFails: ?bool
        )

        # The configured connections of a pipeline: its source, the pipelines whose copies it reads (inputs), the signal
        # sources that it subscribes to, with their names in Signals, its published files, and its hooks. A duration is
        # null if it is not set. WhenRunning is the effect of a signal while a run is in progress: queue, for one more
        # run after it, or restart. If the configuration of the pipeline has errors, only the name is set, and invalid
        # is true.
        type Description (
          name: string,
          description: ?string,
          source: string,
          inputs: []string,
          signals: []string,
          files: []string,
          hooks: []string,
          everyUSec: ?int,
          quietUSec: ?int,
          atMostUSec: ?int,
          freshForUSec: ?int,
          minIntervalUSec: ?int,
          deadlineUSec: ?int,
          maxAgeUSec: ?int,
          whenRunning: ?string,
          needsNetwork: bool,
          invalid: ?bool
        )

        # The counters of a pipeline since the start of the daemon: its runs by outcome and their total duration, the
        # requests, and the bytes of the answers.
        type Counters (
          name: string,
          changed: int,
          unchanged: int,
          failed: int,
          superseded: int,
          cancelled: int,
          durationUSec: int,
          requests: int,
          receivedBytes: int
        )

        # The numbers of pipelines by state.
        type Counts (
          total: int,
          idle: int,
          waiting: int,
          loading: int,
          loaded: int,
          failed: int,
          held: int
        )

        # A refused reload; the previous configuration stays active. Errors is their number, first the first of them,
        # without its excerpt.
        type RefusedReload (
          at: int,
          errors: int,
          first: Diagnostic
        )

        # The jobs of one name that used the daemon's event loop for 20 ms of processor time or more: their number, and
        # the longest.
        type SlowJob (
          job: string,
          count: int,
          longestUSec: int
        )

        # The daemon. Network describes the default network path. ConfigurationSince is the time at which the active
        # configuration was read; refusedReload is the last reload, if it was refused.
        type Daemon (
          version: string,
          pid: int,
          since: int,
          network: string,
          networkReachable: bool,
          pipelines: Counts,
          failingHooks: ?int,
          cacheBytes: ?int,
          cacheLimit: ?int,
          memoryBytes: ?int,
          memoryLimit: ?int,
          configurationSince: ?int,
          refusedReload: ?RefusedReload,
          slowJobs: ?[]SlowJob
        )

        # A signal source: its present fact, the number of firings since the daemon watches it, and the last firing.
        # Ignored is the number of events that fired nothing, because they did not matter; it is null for a source
        # without such events. Unavailable is the reason if the machine lacks what the source needs. The name is that of
        # the signal, such as network; if the signal has several sources, the name begins with it.
        type Signal (
          name: string,
          fact: string,
          unavailable: ?string,
          fired: int,
          ignored: ?int,
          lastFired: ?int,
          lastDetail: ?string
        )

        # The result of a refresh of one pipeline. Without wait it has only the name, or also tryLater. With wait it has
        # the outcome of the run; generation, size and behind are those of the published copy, if there is one.
        type Refreshed (
          name: string,
          outcome: ?Outcome,
          run: ?int,
          generation: ?int,
          size: ?int,
          durationUSec: ?int,
          failure: ?string,
          tryLater: ?TryLaterHint,
          behind: ?bool
        )

        # The result of loading a further page of a branch. Without wait it has only the name and the path. Pages is the
        # number of pages in the copy; hasMore is true if more pages exist.
        type LoadedMore (
          name: string,
          path: []string,
          outcome: ?Outcome,
          run: ?int,
          generation: ?int,
          size: ?int,
          durationUSec: ?int,
          failure: ?string,
          pages: ?int,
          hasMore: ?bool
        )

        # A requested run that waits, and the reason.
        type WaitingHint (
          name: string,
          reason: string
        )

        # Nothing was started, because the origin sent Retry-After or a budget is used up. Until may be unknown.
        type TryLaterHint (
          reason: string,
          until: ?int
        )

        # A parameter, and its new value; null sets the default.
        type Setting (
          parameter: string,
          value: ?string
        )

        # A value that is not accepted, and the reason.
        type Refusal (
          parameter: string,
          reason: string
        )

        type Severity (error, warning)

        # An error or warning of the configuration, and its location. Lines and columns count from 1. The excerpt is the
        # line, or a part of a long line around the error; caret is the number of Unicode characters in the excerpt
        # before the error.
        type Diagnostic (
          severity: Severity,
          file: string,
          line: ?int,
          column: ?int,
          message: string,
          excerpt: ?string,
          caret: ?int
        )

        # The changes of a reload.
        type ReloadSummary (
          added: []string,
          changed: []string,
          removed: []string,
          unchanged: int
        )

        # The log level: the daemon logs messages of this level and of all levels to the right.
        type LogLevel (trace, debug, info, notice, warning, error, critical)

        type EventKind (signal, fact, runStarted, runEnded, state, reloaded, skipped)

        # An event. Its fields by kind:
        #   signal      signal, number (counts the firings of its source) and detail; source, its name in Signals, if the signal
        #               has several sources; pipeline if the signal belongs to a single pipeline
        #   fact        signal and source, as above; detail is the new fact. Only by FollowSignals
        #   runStarted  pipeline and run
        #   runEnded    pipeline, run and, if one was committed, generation
        #   state       pipeline and state, with waitingFor and waitingUntil; detail has more about the wait, or says that
        #               the copy or its content has expired, or is no longer expired, or that the copy was withdrawn, or is
        #               published again
        #   reloaded    the configuration was reloaded: detail has the changes
        #   skipped     number of events that are missing here, because this client read too slowly
        type Event (
          at: int,
          kind: EventKind,
          pipeline: ?string,
          signal: ?string,
          source: ?string,
          number: ?int,
          detail: ?string,
          run: ?Run,
          generation: ?Generation,
          state: ?State,
          waitingFor: ?WaitingFor,
          waitingUntil: ?int
        )

        # The kinds of damage in the cache:
        #   indexDamaged    the index is inconsistent
        #   copyMissing     the published file of the current generation is missing
        #   copyDamaged     the published file is not the current generation; without generation, there is no current one
        #   copyDuplicated  the published file has the right content, but is not the same file as that of its generation
        #   contentDamaged  the file of a generation has other content, or is not a regular file
        #   contentMissing  the file of a generation is missing
        #   contentUnknown  a file with the name of a generation that the index does not know
        #   rejectedDamaged the kept content that a check rejected is damaged or missing
        #   pinLost         the generation at which the pipeline is pinned is missing
        #   unfinished      a file of an unfinished commit
        #   stray           a file that the cache did not make
        #   setDamaged      with several files: the link to their directory, or its content, does not match the current
        #                   generation
        type FindingKind (
          indexDamaged, copyMissing, copyDamaged, copyDuplicated, contentDamaged, contentMissing, contentUnknown, rejectedDamaged, pinLost,
          unfinished, stray, setDamaged
        )

        # A damage in the cache. Pipeline is null if it belongs to no pipeline. Detail is more information, or the
        # reason why it was not repaired.
        type Finding (
          kind: FindingKind,
          pipeline: ?string,
          generation: ?int,
          path: string,
          detail: ?string,
          repaired: bool
        )

        # The content in the cache of a pipeline that is no longer configured: its file below current/, the number of
        # kept generations, the bytes of all content, and the time of the newest commit.
        type Unowned (
          name: string,
          file: ?string,
          generations: int,
          bytes: int,
          committedAt: ?int
        )

        # A pipeline whose content was not removed completely, and the reason. The next Prune tries again.
        type Unpruned (
          name: string,
          reason: string
        )

        # Returns the status of the daemon.
        method GetDaemon() -> (daemon: Daemon)

        # Returns the pipelines with these names, or all, ordered by name. A name may be a shell pattern (fnmatch(3)),
        # which may match no pipeline. States selects pipelines in these states, after selects names after this one, and
        # limit is the largest number of pipelines. Called with more, there are several replies, each with some of the
        # pipelines.
        method List(names: ?[]string, states: ?[]State, after: ?string, limit: ?int) -> (pipelines: []Pipeline)

        # Returns the same as summaries, with much less work: for lists, prompts and monitoring. To be called with more.
        method Summarize(names: ?[]string, states: ?[]State, after: ?string, limit: ?int) -> (summaries: []Summary)

        # Returns the configured connections of the pipelines with these names or patterns, or of all. To be called with
        # more.
        method Describe(names: ?[]string) -> (pipelines: []Description)

        # Returns the counters of the pipelines with these names or patterns, or of all. To be called with more.
        method Metrics(names: ?[]string) -> (pipelines: []Counters)

        # Runs the named pipelines now, or all. At least one name, or all, is required. Without wait, returns when the
        # runs are requested; with wait, when the first run of each pipeline that started after the request, or the run
        # that superseded it, has ended. Called with more, each reply has the new results since the last reply; a reply
        # without results reports a run that waits for the network probe. Force ignores the origin's Retry-After and
        # budgets. An unconditional run sends no validators, so that the origin sends its whole content. If exactly one
        # pipeline is named, its tryLater is the error TryLater.
        method Refresh(names: ?[]string, all: ?bool, wait: ?bool, force: ?bool, unconditional: ?bool) -> (results: []Refreshed, waiting: ?[]WaitingHint)

        # Loads one further page of a set that is loaded on demand (pages.load), and commits the copy with it. Path has
        # the keys that lead to the branch; it may be left out if only one branch has more pages. This is not a check:
        # the time of the next check does not change, and a check that starts meanwhile supersedes it. Simultaneous
        # calls for one branch load one page. Without wait, returns when the page is requested; with wait, when its run
        # has ended.
        method LoadMore(name: string, path: ?[]string, wait: ?bool) -> (result: LoadedMore)

        # Changes parameters of a pipeline: all settings together, or none if a value is not accepted. With
        # othersToDefault, all other parameters get their defaults. Returns, when the values are stored, the names of
        # the changed parameters and all parameters. A run with the new values starts after the quiet period, and
        # supersedes a run in progress.
        method SetParameters(name: string, settings: []Setting, othersToDefault: ?bool) -> (changed: []string, parameters: []Parameter)

        # Returns the location of the current content of a pipeline. A client opens the file with its own rights.
        method Get(name: string) -> (generation: Generation)

        # Returns the newest generations of a pipeline, newest first: at most limit, or all that are known. Key is the
        # path of the key in an item of the content, if it is configured.
        method History(name: string, limit: ?int) -> (generations: []PastGeneration, key: ?string)

        # Returns the content of a kept generation, in pieces, each in Base64. To be called with more. It is for users
        # who may read the pipeline's current copy, by the modes of that file and of the directories above it, and by
        # the mode with which this generation was written: all others get NotReadable.
        method ReadGeneration(name: string, number: int) -> (data: string)

        # Returns the content of a pipeline's candidate, which a check rejected, in the same way as ReadGeneration.
        method ReadCandidate(name: string) -> (data: string)

        # Publishes a pipeline's candidate as a new generation. From now on checks do not reject this content. With a
        # digest, or its beginning, only if it is the digest of the candidate. Returns the new current generation, and
        # the number of the previous one.
        method Accept(name: string, digest: ?string) -> (generation: Generation, replaced: ?int)

        # Makes a kept generation the current one again, with its own number; without a number, the newest one before
        # the current one. Returns the new current generation, and the number of the previous one. The content that the
        # source had at the last check does not replace it; other content does, unless the pipeline is pinned.
        method Rollback(name: string, number: ?int) -> (generation: Generation, replaced: ?int)

        # Prevents the copy of a pipeline from being replaced or removed until Unpin. The pipeline still runs. Changed
        # is false if it was pinned already.
        method Pin(name: string) -> (generation: Generation, changed: bool)

        # Ends a pin: the next check publishes the content of the source again. Changed is false if the pipeline was not
        # pinned; generation is null if there is no copy.
        method Unpin(name: string) -> (generation: ?Generation, changed: bool)

        # Prevents all runs of a pipeline until Release, also after restarts. A run in progress ends normally; signals
        # that fire meanwhile take effect at Release, and the copy stays. Changed is false if the pipeline was held
        # already.
        method Hold(name: string) -> (name: string, changed: bool)

        # Lets a held pipeline run again; signals that fired meanwhile take effect. Changed is false if it was not held.
        method Release(name: string) -> (name: string, changed: bool)

        # Examines the cache while the daemon works: compares all content with its digests, the index with the files,
        # and the published files with their generations. With repair, removes damaged files, so that the next request
        # is unconditional, restores files if possible, and moves files that are not the cache's own to the directory
        # strays. To be called with more: each reply has the findings since the last reply, and the numbers of examined
        # pipelines, generations and bytes. Unnamed is the number of further findings of a pipeline that has too many.
        method Examine(repair: ?bool) -> (findings: []Finding, pipelines: int, generations: int, bytes: int, unnamed: int)

        # Returns the content in the cache of pipelines that are neither in the active configuration nor in its files.
        # To be called with more.
        method ListUnowned() -> (pipelines: []Unowned)

        # Removes everything that is kept for these pipelines: copies, generations and records. Configured pipelines,
        # also invalid ones, and pipelines without content are left out. Returns the removed pipelines, and those that
        # were not removed completely, which do not prevent the removal of others.
        method Prune(names: []string) -> (pipelines: []Unowned, failed: ?[]Unpruned)

        # Reports events from now on, of the pipelines with these names or of all; signals are always reported. To be
        # called with more. The first reply is immediate and has no event: from then on no event is missing without an
        # event of kind skipped.
        method Monitor(names: ?[]string) -> (event: ?Event)

        # Returns past events that the daemon still has in memory, oldest first, since an instant or all: signals,
        # changes of facts, runs, and states that do not follow from runs, of the pipelines with these names or
        # patterns, or of all. After completeSince no event is missing; older events are in the journal. An event
        # runEnded has no generation, only its number in the run. To be called with more.
        method RecentEvents(names: ?[]string, since: ?int) -> (events: []Event, completeSince: int)

        # Returns the signal sources and their present facts.
        method Signals() -> (signals: []Signal)

        # Reports occurrences of signals and changes of their facts from now on: of the sources with these names, of all
        # sources of a signal with such a name, or of all. To be called with more; the first reply is like that of
        # Monitor.
        method FollowSignals(names: ?[]string) -> (event: ?Event)

        # Fires a signal source by hand, to test a configuration: all its subscribers receive the signal, and the detail
        # names the caller. As with the real events, network and resume make later requests use new connections; reload
        # fires only the signal, and does not read the configuration. The fact does not change. Returns the number of
        # subscribed pipelines.
        method FireSignal(name: string) -> (pipelines: int)

        # Reads the configuration again and applies the changes; then, unless configurationOnly is true, the signal
        # reload fires. The diagnostics of a successful reload are warnings.
        method Reload(configurationOnly: ?bool) -> (summary: ReloadSummary, diagnostics: []Diagnostic)

        # Returns the present log level.
        method GetLogLevel() -> (level: LogLevel)

        # Sets the log level until the daemon ends.
        method SetLogLevel(level: LogLevel) -> ()

        # There is no pipeline with this name. The suggestion is a similar name. The file is a file of this pipeline
        # that is not active, because it is newer than the last reload, or that reload was refused.
        error NoSuchPipeline (name: string, suggestion: ?string, file: ?string)

        # There is no signal source with this name. The suggestion is a similar name.
        error NoSuchSignal (name: string, suggestion: ?string)

        # This signal belongs to single pipelines and cannot be fired by hand; Refresh runs a pipeline.
        error CannotFire (name: string)

        # The pipeline does not run: its configuration has errors.
        error PipelineInvalid (name: string)

        # The pipeline has no copy yet.
        error NoGeneration (name: string)

        # The copy is withdrawn because it is past its maximum age: its generation, and the time of the withdrawal.
        # ReadGeneration returns its content.
        error Withdrawn (name: string, number: int, since: int)

        # The content of this generation is not kept, or never existed; without a number, no generation before the
        # current one is kept. Kept lists the kept ones.
        error NoSuchGeneration (name: string, number: ?int, kept: []int)

        # The file of this generation is damaged.
        error DamagedGeneration (name: string, number: int)

        # The modes of the files do not allow the caller's user to read the content of this generation, or of the
        # candidate.
        error NotReadable (name: string, number: ?int)

        # The pipeline has no candidate.
        error NoCandidate (name: string)

        # The candidate has another digest: this one.
        error OtherCandidate (name: string, digest: string)

        # The copy is pinned at this generation.
        error Pinned (name: string, number: int)

        # No value was set, because these values are not accepted.
        error ParametersRefused (name: string, refusals: []Refusal)

        # The configuration has errors; the previous one stays active.
        error ConfigurationRefused (diagnostics: []Diagnostic)

        # All pages of this branch are in the copy.
        error NothingMore (name: string, path: []string)

        # There is no branch with these keys whose pages are loaded on demand. The suggestion has the keys of a similar
        # one, separated by spaces.
        error NoSuchBranch (name: string, path: []string, suggestion: ?string)

        # Several branches have more pages, and the call names none.
        error SeveralBranches (name: string, more: MorePages)

        # The pipeline has no pages that can be loaded; the reason completes the sentence "cannot load more".
        error CannotLoadMore (name: string, reason: string)

        # Nothing was started: the origin sent Retry-After, or a budget is used up.
        error TryLater (reason: string, until: ?int)

        # The operation failed, for example because there is no free space. The published file is still consistent; Get
        # and List describe it. Without a name the error is about the cache as a whole.
        error Failed (name: ?string, reason: string)

        # The daemon cannot do this at present, for example while it reloads or stops.
        error Busy (reason: string)

        """
}
