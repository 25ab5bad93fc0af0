# A call that returns several values: names, the layers in it, one that is left out, several in a repeat.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}
fn cell(x, h, c) {
  gates = linear(concat([x, h]), 12)
  c     = sigmoid(slice(gates, 0, 0, 6)) * c + sigmoid(slice(gates, 0, 6, 12))
  return tanh(c), c
}
fn twice(x) { return cell(x, x, x) }
model {
  h, c = twice(x)
  repeat i in 0..2 {
    h, c = cell(x, h, c)
  }
  _, last = cell(h, h, c, name = "end")
  scores  = linear(last, 3)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 4
}
