"""Variations by models: the plumbing, on tiny models that the tests make."""

from __future__ import annotations

import builtins
import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from shaketable.core.documents import Query
from shaketable.core.errors import BadInput, MissingExtra
from shaketable.core.protocols import TransformContext
from shaketable.core.seeding import make_item_rng
from shaketable.transforms import generated
from shaketable.transforms.generated import BackTranslation, DescToTitle, Paraphrase, open_generator
from shaketable.transforms.vary import vary
from tests.processes import in_a_process

pytestmark = pytest.mark.slow

TEXTS = ["red boat", "green tea", "the red tea of the green boat", "boat", ""]
VOCABULARY = ["<pad>", "</s>", "<unk>", "red", "boat", "green", "tea", "the", "of", "?", ":", "summarize", "paraphrase"]


@pytest.fixture(autouse=True)
def fresh():
    open_generator.cache_clear()
    yield
    open_generator.cache_clear()


def test_without_the_libraries_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.partition(".")[0] == "transformers":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"shaketable\[neural\]"):
        Paraphrase().apply("red boat", make_item_rng(0), TransformContext())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A T5 of a few hundred numbers with a tokenizer of thirteen words, taught to write "tea boat" for anything."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="<unk>")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(VOCABULARY),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        dropout_rate=0.0,
    )
    model = transformers.T5ForConditionalGeneration(config)
    inputs = tokenizer(["red boat", "paraphrase : green tea?"], return_tensors="pt", padding=True)
    labels = torch.tensor([[6, 4, 1], [6, 4, 1]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    path = tmp_path_factory.mktemp("model")
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_the_output_of_the_model_is_returned(folder):
    edit = Paraphrase(str(folder))
    assert edit.apply("red  boat", make_item_rng(0), TransformContext()) == "tea boat"
    assert edit.apply("tea boat", make_item_rng(0), TransformContext()) is None  # a copy is no variation
    assert edit.apply(" ", make_item_rng(0), TransformContext()) is None


def test_many_at_once_are_the_same_as_one_by_one_whatever_the_batch_and_order(folder):
    contexts = [TransformContext()] * len(TEXTS)
    draws = [make_item_rng(0, text) for text in TEXTS]
    for make in (Paraphrase, DescToTitle):
        edit = make(str(folder))
        alone = [edit.apply(text, draws[0], TransformContext()) for text in TEXTS]
        for batch in (1, 2, 32):
            small = dataclasses.replace(edit, batch=batch)
            assert small.apply_many(TEXTS, draws, contexts) == alone
            assert small.apply_many(TEXTS[::-1], draws, contexts) == alone[::-1]


def test_through_vary(folder):
    made = vary({"q": Query("Red boat")}, [Paraphrase(str(folder))], n=3)
    assert [(v.text, v.category) for v in made] == [("tea boat", "paraphrasing")]
    assert made[0].method == f"paraphrase(model={str(folder)!r})"


def test_the_prompt_of_each_preset_reaches_the_model(folder, monkeypatch):
    seen = []
    tokenizer = open_generator(str(folder)).tokenizer
    monkeypatch.setattr(
        generated,
        "open_generator",
        lambda name: dataclasses.replace(open_generator(name), tokenizer=Listening(tokenizer, seen)),
    )
    Paraphrase(str(folder)).apply("red boat", make_item_rng(0), TransformContext())
    DescToTitle(str(folder)).apply("red boat", make_item_rng(0), TransformContext())
    assert seen == [["paraphrase : red boat?"], ["summarize : red boat?"]]


class Listening:
    """A tokenizer that records its input."""

    def __init__(self, tokenizer, seen):
        self.tokenizer, self.seen = tokenizer, seen

    def __call__(self, texts, **settings):
        self.seen.append(texts)
        return self.tokenizer(texts, **settings)

    def batch_decode(self, *args, **settings):
        return self.tokenizer.batch_decode(*args, **settings)


def test_a_model_that_does_not_translate_is_an_error(folder):
    with pytest.raises(BadInput, match="does not translate into 'de'"):
        BackTranslation(str(folder)).apply("red boat", make_item_rng(0), TransformContext())


def test_there_and_back(folder):
    """Two passes: into the pivot with its code forced first, then back with that of English."""
    torch = pytest.importorskip("torch")
    calls = []

    class Translator:
        """Knows two languages, as M2M100 does: a source to set, a number for each."""

        src_lang = "en"

        def __call__(self, texts, **settings):
            self.texts = texts
            return {
                "input_ids": torch.zeros(len(texts), 1, dtype=torch.long),
                "attention_mask": torch.ones(len(texts), 1),
            }

        def get_lang_id(self, code):
            return {"en": 1, "de": 2}[code]

        def generate(self, forced_bos_token_id, num_beams, **settings):
            calls.append((self.src_lang, forced_bos_token_id, num_beams, self.texts))
            return [f"{text} ({self.src_lang})" for text in self.texts]

        def batch_decode(self, output, skip_special_tokens):
            return output

    both = Translator()
    model = generated.Generator("toy", both, both)
    outputs = ["red boat"]
    for step in BackTranslation().passes:
        outputs = model.generate(outputs, step)
    assert outputs == ["red boat (en) (de)"]
    assert calls == [("en", 2, 5, ["red boat"]), ("de", 1, 5, ["red boat (en)"])]


def test_missing_weights_name_the_places(home, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadInput) as error:
        Paraphrase("nobody/nothing").apply("red boat", make_item_rng(0), TransformContext())
    message = str(error.value)
    assert str(home / "resources" / "nobody" / "nothing") in message
    assert "models--nobody--nothing" in message
    assert "the hub" in message


def test_a_model_in_our_resources_is_found_by_name(folder, home):
    (home / "resources" / "toys").mkdir(parents=True)
    (home / "resources" / "toys" / "t5").symlink_to(folder)
    assert Paraphrase("toys/t5").apply("red boat", make_item_rng(0), TransformContext()) == "tea boat"


def copy_model(folder, tmp_path, name, **changes):
    """Copy a model, change settings in one of its files, and return the folder."""
    target = tmp_path / "model"
    shutil.copytree(folder, target)
    settings = json.loads((target / name).read_text()) if (target / name).exists() else {}
    (target / name).write_text(json.dumps(settings | changes))
    return target


OWN_CODE = [
    ("config.json", {"auto_map": {"AutoModelForSeq2SeqLM": "evil.Evil", "AutoConfig": "evil.Config"}}),
    ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}),
]


def test_code_of_a_model_is_not_run_and_no_question_is_asked(folder, tmp_path):
    targets = []
    for number, (name, wanted) in enumerate(OWN_CODE):
        targets.append(copy_model(folder, tmp_path / str(number), name, **wanted))
        (targets[-1] / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    code = """
import sys
from shaketable.core.seeding import make_item_rng
from shaketable.transforms.generated import Paraphrase
from shaketable.core.errors import BadInput
from shaketable.core.protocols import TransformContext
for model in sys.argv[1:]:
    try:
        Paraphrase(model).apply("red boat", make_item_rng(0), TransformContext())
    except BadInput as error:
        print(error)
"""
    done = in_a_process(code, *targets)
    answers = done.stdout.splitlines()
    assert len(answers) == len(targets), done.stderr
    assert all("needs its own code (auto_map), which is never run" in answer for answer in answers), answers
    assert not (tmp_path / "ran").exists()


def test_how_a_model_writes_is_read_from_its_files(folder, tmp_path):
    changes = {"no_repeat_ngram_size": 7, "custom_generate": "evil", "watermarking_config": {"x": 1}}
    loaded = open_generator(str(copy_model(folder, tmp_path, "generation_config.json", **changes)))
    assert loaded.model.generation_config.no_repeat_ngram_size == 7
    assert loaded.model.generation_config.decoder_start_token_id == 0
    assert not hasattr(loaded.model.generation_config, "custom_generate")


def test_older_models_have_the_settings_in_their_configuration(folder, tmp_path):
    target = copy_model(folder, tmp_path, "config.json", decoder_start_token_id=3, num_beams=2)
    (target / "generation_config.json").unlink()
    found = open_generator(str(target)).model.generation_config
    assert (found.decoder_start_token_id, found.num_beams) == (3, 2)


def test_weights_that_are_lacking_are_named(folder, tmp_path):
    with pytest.raises(BadInput, match=r"cannot be loaded; .* has no weights for encoder\.block\.1"):
        open_generator(str(copy_model(folder, tmp_path, "config.json", num_layers=2)))
