"use strict";
(() => {
  const tables = JSON.parse(document.getElementById("numbers").textContent);
  const at = (id) => document.getElementById(id);
  const show = (id, text) => { at(id).textContent = text; };
  const share = (x) => x.toFixed(4);
  const whole = (x) => x.toLocaleString("en-US");
  const tenth = (x) => x.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const short = (x) => String(Number(x.toPrecision(4)));
  const ratio = (a, b) => (b > 0 ? a / b : 0);
  let table, threshold;  // threshold: index of a cut, or null for the best one

  // F from counts, eq. 1 of the paper, with 0/0 = 0.
  const fbeta = (tp, k, positives, beta) => ratio((1 + beta * beta) * tp, k + beta * beta * positives);

  function confusion(kind, tp, k, positives, format) {
    show(kind + "-tp", format(tp));
    show(kind + "-fp", format(k - tp));
    show(kind + "-fn", format(Math.max(0, positives - tp)));
    show(kind + "-tn", format(Math.max(0, table.n - k - positives + tp)));
  }

  function expect(best, cut, i) {
    show("expected-f", share(threshold === null ? best.f : cut.f[i]));
    show("expected-std", threshold === null ? "± " + share(best.std) : "best for this β: " + share(best.f));
    show("expected-precision", share(cut.precision));
    show("expected-recall", share(cut.recall));
    confusion("expected", cut.mass, cut.k, table.mean, tenth);
  }

  function draw() {
    const i = Number(at("beta").value), beta = table.betas[i];
    const best = table.decisions[i];
    const cut = threshold === null ? best : table.cuts[threshold];
    at("expected").hidden = !table.expects;
    show("beta-value", String(beta));
    show("threshold-value", cut.threshold === null ? "above all" : short(cut.threshold));
    at("beta").setAttribute("aria-valuetext", "beta " + beta);
    at("threshold").setAttribute("aria-valuetext", at("threshold-value").textContent);
    if (table.expects) expect(best, cut, i);
    show("found-f", share(fbeta(cut.tp, cut.k, table.positives, beta)));
    show("found-precision", share(ratio(cut.tp, cut.k)));
    show("found-recall", share(ratio(cut.tp, table.positives)));
    confusion("found", cut.tp, cut.k, table.positives, whole);
    show("live-sentence", (threshold === null ? "Best for β = " + beta + ": " : "With this threshold: ")
      + whole(cut.k) + " of " + whole(table.n) + " rows selected.");
    at("best").disabled = threshold === null;
    if (threshold === null) at("threshold").value = nearest(best.threshold);
  }

  function nearest(value) {
    if (value === null) return table.cuts.length - 1;
    let found = 0;
    table.cuts.forEach((cut, i) => {
      if (Math.abs(cut.threshold - value) < Math.abs(table.cuts[found].threshold - value)) found = i;
    });
    return found;
  }

  function open(index) {
    table = tables[index];
    threshold = null;
    at("beta").max = table.betas.length - 1;
    at("threshold").max = table.cuts.length - 1;
    at("beta").value = table.betas.indexOf(table.beta);
    draw();
  }

  at("beta").addEventListener("input", () => { threshold = null; draw(); });
  at("threshold").addEventListener("input", (event) => { threshold = Number(event.target.value); draw(); });
  at("best").addEventListener("click", () => { threshold = null; draw(); });
  if (at("label")) at("label").addEventListener("change", (event) => open(Number(event.target.value)));
  open(0);
})();
