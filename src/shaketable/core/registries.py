"""The registries of all objects that a spec can name; installed packages can add rows.

A package adds rows with entry points, name = "module:Class", in these groups:

    shaketable.rankers       shaketable.tasks          shaketable.detectors   shaketable.synonym_sources
    shaketable.learners      shaketable.recipes        shaketable.defences    shaketable.objectives
    shaketable.writers       shaketable.goals          shaketable.probes      shaketable.list_sources
    shaketable.transforms    shaketable.constraints    shaketable.measures

`core.protocols`, `core.attack_types`, `nlp.synonyms` and `training.plan` define the methods of their classes.
"""

from __future__ import annotations

from shaketable.core.import_object import OBJECT_PATTERN
from shaketable.core.registry import Registry

ENDPOINT_PATTERN = r"https?://.+|(?:localhost|[\w-]+(?:\.[\w-]+)*|\[[0-9a-f:]+\]):\d+(?:/.*)?|localhost/.*"
"""The addresses of endpoints; an address without a scheme has a port or starts with localhost."""
RANKERS = Registry(
    "ranker",
    {
        "bm25": "shaketable.rankers.lexical:BM25",
        "ql": "shaketable.rankers.lexical:QL",
        "ql_jm": "shaketable.rankers.lexical:QLJM",
        "rm3": "shaketable.rankers.feedback:RM3",
        "doct5query": "shaketable.rankers.doct5query:DocT5Query",
        "http": "shaketable.rankers.http.reranker:HttpEndpoint",
        "search": "shaketable.rankers.http.searcher:SearchEndpoint",
        "llm": "shaketable.rankers.llm.model:LLM",
        "python": "shaketable.rankers.python:PythonObject",
        "run": "shaketable.rankers.run_file:RunFile",
        "saved": "shaketable.rankers.saved:SavedModel",
        "smoothed": "shaketable.defences.smoothing:SubstitutionSmoothed",
        "masked": "shaketable.defences.smoothing:MaskSmoothed",
        "dense": "shaketable.rankers.neural.models:Dense",
        "hf": "shaketable.rankers.neural.models:HuggingFaceCrossEncoder",
        "st": "shaketable.rankers.neural.models:SentenceTransformer",
        "t5": "shaketable.rankers.neural.models:T5",
        "onnx": "shaketable.rankers.neural.models:Onnx",
        "guarded": "shaketable.defences.guard:Guarded",
    },
    shorthands={
        r"llm:(.+)": "llm",
        r"search:(.+)": "search",
        rf"({ENDPOINT_PATTERN})": "http",
        r"run:(.+)": "run",
        r"hf:(.+)": "hf",
        r"st:(.+)": "st",
        r"t5:(.+)": "t5",
        r"onnx:(.+)": "onnx",
        rf"({OBJECT_PATTERN})": "python",
        r"([^()]*/[^()]*)": "saved",
    },
    function_adapter="python",
    required_method="open",
)
LEXICAL_RANKERS = tuple(
    name for name, row in RANKERS.builtin_rows.items() if row.startswith("shaketable.rankers.lexical:")
)
"""The lexical rankers; training tunes their parameters."""
LEARNERS = Registry(
    "learner",
    {
        "prank": "shaketable.training.linear:PRank",
        "ranksvm": "shaketable.training.linear:RankSVM",
        "adarank": "shaketable.training.linear:AdaRank",
        "afs": "shaketable.training.linear:AFS",
        "gbrt": "shaketable.training.boosted:GBRT",
        "lambdamart": "shaketable.training.lambdamart:LambdaMART",
        "lgbm": "shaketable.training.lgbm:LGBM",
        "lexical": "shaketable.training.lexical:LexicalLearner",
    },
    shorthands={rf"((?:{'|'.join(LEXICAL_RANKERS)})(?:\(.*\))?)": "lexical"},
    modules=("shaketable.training.neural",),  # one class per network
)
WRITERS = Registry(
    "writer",
    {},
    modules=("shaketable.training.seq2seq",),  # one class per type of training pairs
)
"""Trainable text generators; they are not rankers, but transforms and rankers use them."""
TRANSFORMS = Registry(
    "transform",
    {
        # query attack (paper 000)
        "char_noise": "shaketable.transforms.noise:CharNoise",
        "word_noise": "shaketable.transforms.noise:WordNoise",
        # misspelling (paper 004, then ours)
        "neighb_char_swap": "shaketable.transforms.typos:NeighbCharSwap",
        "random_char_sub": "shaketable.transforms.typos:RandomCharSub",
        "qwerty_char_sub": "shaketable.transforms.typos:QwertyCharSub",
        "real_typo": "shaketable.transforms.typos:RealTypo",
        "lookalike_char": "shaketable.transforms.typos:LookalikeChar",
        "phonetic": "shaketable.transforms.typos:Phonetic",
        "accent_letter": "shaketable.transforms.typos:AccentLetter",
        "drop_letter": "shaketable.transforms.typos:DropLetter",
        "double_letter": "shaketable.transforms.typos:DoubleLetter",
        "split_word": "shaketable.transforms.typos:SplitWord",
        "join_words": "shaketable.transforms.typos:JoinWords",
        # naturality
        "remove_stop_words": "shaketable.transforms.stopwords:RemoveStopWords",
        "desc_to_title": "shaketable.transforms.generated:DescToTitle",
        "to_keywords": "shaketable.transforms.question_rewriting:ToKeywords",
        "to_question": "shaketable.transforms.question_rewriting:ToQuestion",
        "change_case": "shaketable.transforms.case:ChangeCase",
        "change_punctuation": "shaketable.transforms.case:ChangePunctuation",
        # ordering
        "random_order_swap": "shaketable.transforms.word_order:RandomOrderSwap",
        # paraphrasing
        "back_translation": "shaketable.transforms.generated:BackTranslation",
        "paraphrase": "shaketable.transforms.generated:Paraphrase",
        "word_embed_syn_swap": "shaketable.transforms.synonyms:WordEmbedSynSwap",
        "wordnet_syn_swap": "shaketable.transforms.synonyms:WordNetSynSwap",
        "syn_swap": "shaketable.transforms.synonyms:SynSwap",
        # other languages
        "strip_accents": "shaketable.transforms.languages:StripAccents",
        "transliterate": "shaketable.transforms.languages:Transliterate",
        "keyboard_slip": "shaketable.transforms.languages:KeyboardSlip",
        "split_compound": "shaketable.transforms.languages:SplitCompound",
        "join_compound": "shaketable.transforms.languages:JoinCompound",
        "change_width": "shaketable.transforms.languages:ChangeWidth",
        "mix_language": "shaketable.transforms.languages:MixLanguage",
        "other_language": "shaketable.transforms.languages:OtherLanguage",
        # documents (paper 001)
        "add_queries": "shaketable.transforms.add_queries:AddQueries",
        # your own
        "function": "shaketable.transforms.user_function:FunctionTransform",
    },
    function_adapter="function",
)
MEASURES = Registry(
    "measure",
    {
        "vnap": "shaketable.measures.variance:VNAP",
        "vap": "shaketable.measures.variance:VAP",
        "gmap": "shaketable.measures.variance:GMAP",
        "gm_map": "shaketable.measures.variance:GMMap",
        "worst_area": "shaketable.measures.variance:WorstArea",
        "top_change": "shaketable.measures.rank_distance:TopChange",
        "kendall": "shaketable.measures.rank_distance:Kendall",
        "rbo": "shaketable.measures.rank_distance:RBO",
        "overlap": "shaketable.measures.rank_distance:Overlap",
        "lsd": "shaketable.measures.rank_distance:LSD",
        "rlsd": "shaketable.measures.rank_distance:RLSD",
        "lmd": "shaketable.measures.rank_distance:LMD",
        "function": "shaketable.measures.user_function:FunctionMeasure",
    },
    function_adapter="function",
)
TASKS = Registry(
    "task",
    {
        "effectiveness": "shaketable.tasks.effectiveness:Effectiveness",
        "first_stage": "shaketable.tasks.first_stage:FirstStage",
        "variance": "shaketable.tasks.variance:Variance",
        "risk": "shaketable.tasks.risk:Risk",
        "agreement": "shaketable.tasks.agreement:Agreement",
        "consistency": "shaketable.tasks.consistency:Consistency",
        "query_typos": "shaketable.tasks.query_typos:QueryTypos",
        "query_variation": "shaketable.tasks.query_variation:QueryVariation",
        "fusion": "shaketable.tasks.fusion:Fusion",
        "document_form": "shaketable.tasks.document_form:DocumentForm",
        "probes": "shaketable.tasks.probes:ProbesTask",
        "languages": "shaketable.tasks.languages:LanguagesTask",
        "document_attack": "shaketable.tasks.document_attack:DocumentAttack",
        "competition": "shaketable.tasks.competition:RankCompetition",
        "defence": "shaketable.tasks.defence:DefenceTask",
        "certificate": "shaketable.tasks.certificate:Certificate",
        "parity": "shaketable.tasks.parity:Parity",
        "query_type_shift": "shaketable.tasks.query_type_shift:QueryTypeShift",
        "corpus_shift": "shaketable.tasks.corpus_shift:CorpusShift",
        "llm_ranker": "shaketable.tasks.llm_ranker:LLMRanker",
        "prompt_wording": "shaketable.tasks.prompt_wording:PromptWording",
    },
)
RECIPES = Registry(
    "recipe",
    {
        # by gradients of a network (paper 003)
        "wsra": "shaketable.attacks.wsra:WSRA",
        "white_wsra": "shaketable.attacks.wsra:WhiteWSRA",
        "hotflip": "shaketable.attacks.hotflip:HotFlip",
        # by ranks alone
        "query_insertion": "shaketable.attacks.insertion:QueryInsertion",
        "query_line": "shaketable.attacks.insertion:QueryLine",
        "keyword_stuffing": "shaketable.attacks.insertion:KeywordStuffingRecipe",
        "sentence_insertion": "shaketable.attacks.sentence_insertion:SentenceInsertion",
        "instruction": "shaketable.attacks.injection:Instruction",
        "template_tokens": "shaketable.attacks.injection:TemplateTokens",
        "greedy": "shaketable.attacks.synonyms:GreedySynonyms",
        "characters": "shaketable.attacks.characters:Misspellings",
        "homoglyphs": "shaketable.attacks.characters:Homoglyphs",
        "invisible": "shaketable.attacks.characters:InvisibleCharacters",
    },
)
GOALS = Registry(
    "goal",
    {
        "promote": "shaketable.attacks.goals:Promote",
        "demote": "shaketable.attacks.goals:Demote",
        "top": "shaketable.attacks.goals:Top",
    },
)
CONSTRAINTS = Registry(
    "constraint",
    {
        "most_words": "shaketable.attacks.constraints:MostWords",
        "same_length": "shaketable.attacks.constraints:SameLength",
        "part_of_speech": "shaketable.attacks.constraints:PartOfSpeech",
        "similarity": "shaketable.attacks.constraints:Similarity",
        "fluency": "shaketable.attacks.constraints:Fluency",
        "no_query_terms": "shaketable.attacks.constraints:NoQueryTerms",
    },
)
DETECTORS = Registry(
    "detector",
    {
        "spamicity": "shaketable.attacks.detectors:Spamicity",
        "surprise": "shaketable.attacks.detectors:Surprise",
        "glyphs": "shaketable.attacks.detectors:SuspiciousCharacters",
        "instructions": "shaketable.attacks.detectors:Instructions",
    },
)
DEFENCES = Registry(
    "defence",
    {
        "typos": "shaketable.defences.typos:TypoTraining",
        "certdr": "shaketable.defences.certdr:CertDR",
        "standard": "shaketable.defences.standard:Standard",
        "da": "shaketable.defences.data_augmentation:DataAugmentation",
        "at": "shaketable.defences.adversarial_training:AdversarialTraining",
        "piat": "shaketable.defences.piat:PIAT",
    },
)
PROBES = Registry(
    "probe",
    {
        # measure and match (paper 001, section 4), and axioms
        "matched": "shaketable.probes.matched_pairs:MatchedPairs",
        "tfc1": "shaketable.probes.axioms:TFC1",
        "tfc2": "shaketable.probes.axioms:TFC2",
        "tfc3": "shaketable.probes.axioms:TFC3",
        "tdc": "shaketable.probes.axioms:TDC",
        "lnc1": "shaketable.probes.axioms:LNC1",
        "tf_lnc": "shaketable.probes.axioms:TFLNC",
        "stmc1": "shaketable.probes.axioms:STMC1",
        "stmc2": "shaketable.probes.axioms:STMC2",
        "prox1": "shaketable.probes.axioms:PROX1",
        "prox2": "shaketable.probes.axioms:PROX2",
        "prox3": "shaketable.probes.axioms:PROX3",
        "prox4": "shaketable.probes.axioms:PROX4",
        "prox5": "shaketable.probes.axioms:PROX5",
        # manipulation (paper 001, then ours)
        "remove_stops_punct": "shaketable.probes.manipulations:RemoveStopsPunct",
        "lemmatize": "shaketable.probes.manipulations:Lemmatize",
        "retokenize": "shaketable.probes.manipulations:Retokenize",
        "fold_case": "shaketable.probes.manipulations:FoldCase",
        "delete_punctuation": "shaketable.probes.manipulations:DeletePunctuation",
        "typos": "shaketable.probes.manipulations:TyposProbe",
        "shuffle_words": "shaketable.probes.manipulations:ShuffleWords",
        "shuffle_sentence_words": "shaketable.probes.manipulations:ShuffleSentenceWords",
        "shuffle_noun_phrases": "shaketable.probes.manipulations:ShuffleNounPhrases",
        "reverse_noun_phrases": "shaketable.probes.manipulations:ReverseNounPhrases",
        "shuffle_some_words": "shaketable.probes.manipulations:ShuffleSomeWords",
        "shuffle_prepositions": "shaketable.probes.manipulations:ShufflePrepositions",
        "shuffle_sentences": "shaketable.probes.manipulations:ShuffleSentences",
        "reverse_sentences": "shaketable.probes.manipulations:ReverseSentences",
        "reverse_words": "shaketable.probes.manipulations:ReverseWords",
        "delete_sentence": "shaketable.probes.manipulations:DeleteSentence",
        "replace_with_query": "shaketable.probes.manipulations:ReplaceWithQuery",
        "prepend_query": "shaketable.probes.manipulations:PrependQuery",
        "add_queries": "shaketable.probes.manipulations:AddQueriesProbe",
        "add_nonrelevant_sentence": "shaketable.probes.manipulations:AddNonrelevantSentence",
        "keyword_stuffing": "shaketable.probes.manipulations:KeywordStuffingProbe",
        "duplicate_document": "shaketable.probes.manipulations:DuplicateDocument",
        "bury_answer": "shaketable.probes.manipulations:BuryAnswer",
        "append_boilerplate": "shaketable.probes.manipulations:AppendBoilerplate",
        # data set transfer (paper 001)
        "fluency": "shaketable.probes.transfer:FluencyProbe",
        "formality": "shaketable.probes.transfer:Formality",
        "summaries": "shaketable.probes.transfer:Summaries",
        "simplification": "shaketable.probes.transfer:Simplification",
        "paraphrase": "shaketable.probes.transfer:ParaphraseProbe",
        "bias": "shaketable.probes.transfer:Bias",
        "factuality": "shaketable.probes.transfer:Factuality",
        # minimal pairs
        "negation": "shaketable.probes.minimal_pairs:Negation",
        "exclusion": "shaketable.probes.minimal_pairs:Exclusion",
        "number": "shaketable.probes.minimal_pairs:Number",
        "date": "shaketable.probes.minimal_pairs:Date",
        "entity": "shaketable.probes.minimal_pairs:Entity",
        "source_bias": "shaketable.probes.minimal_pairs:SourceBias",
        "position": "shaketable.probes.minimal_pairs:Position",
        "brevity": "shaketable.probes.minimal_pairs:Brevity",
        "repetition": "shaketable.probes.minimal_pairs:Repetition",
        "literal_match": "shaketable.probes.minimal_pairs:LiteralMatch",
        # other languages
        "language_pairs": "shaketable.probes.languages:LanguagePairs",
        "own_language": "shaketable.probes.languages:OwnLanguage",
        "mixed_document": "shaketable.probes.languages:MixedDocument",
        "direction_marks": "shaketable.probes.languages:DirectionMarks",
        "normal_forms": "shaketable.probes.languages:NormalForms",
        # your own
        "pairs": "shaketable.probes.user_pairs:UserPairs",
    },
)
SYNONYMS = Registry(
    "synonym source",
    {
        "thesaurus": "shaketable.nlp.synonyms:ThesaurusSynonyms",
        "wordnet": "shaketable.nlp.synonyms:WordNetSynonyms",
        "counterfitted": "shaketable.nlp.synonyms:CounterfittedSynonyms",
        "listed": "shaketable.nlp.synonyms:ListedSynonyms",
    },
)

OBJECTIVES = Registry(
    "objective",
    {
        "hinge": "shaketable.training.losses:HingeLoss",
        "ranknet": "shaketable.training.losses:RankNetLoss",
        "bce": "shaketable.training.losses:BCELoss",
        "likelihood": "shaketable.training.losses:LikelihoodLoss",
        "softmax": "shaketable.training.losses:SoftmaxLoss",
        "list_mle": "shaketable.training.losses:ListMLELoss",
        "lambda_loss": "shaketable.training.losses:LambdaLoss",
        "margin_mse": "shaketable.training.losses:MarginMSELoss",
        "self_teaching": "shaketable.defences.typos:SelfTeachingLoss",
        "urisk": "shaketable.training.risk_losses:URiskLoss",
        "georisk": "shaketable.training.risk_losses:GeoRiskLoss",
        "piat": "shaketable.defences.piat:PIATLoss",
    },
)

LIST_SOURCES = Registry(
    "list source",
    {
        "judgements": "shaketable.training.plan:JudgementSource",
        "teacher": "shaketable.training.plan:TeacherSource",
        "imitated": "shaketable.training.plan:ImitationSource",
        "control": "shaketable.training.plan:ShuffledLabelSource",
        "varied_queries": "shaketable.defences.typos:VariedQuerySource",
        "noisy": "shaketable.defences.certdr:NoisySource",
        "augmented": "shaketable.defences.data_augmentation:AugmentedSource",
        "adversarial": "shaketable.defences.adversarial_training:AdversarialSource",
        "paired": "shaketable.defences.piat:PairedSource",
    },
)

MODEL_FORMATS = {
    "formula": "shaketable.rankers.saved_spec",
    "recorded": "shaketable.rankers.run_file",
    "smoothed": "shaketable.defences.smoothing",
}
"""Model folders other than networks and feature-based models: kind -> the module whose `open_folder` reads it."""

RENDERERS = {
    "chart": "shaketable.report.charts:build_chart",
    "figure": "shaketable.report.notebook:render_figure",
    "result": "shaketable.report.notebook:render_result",
}
"""The functions of the report that show results and figures in a notebook."""
