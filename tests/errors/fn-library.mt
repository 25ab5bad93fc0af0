# A function hides one of the library, in its own body too.
fn relu(x) { return relu(x) * 2 }
fn gelu(x, slope) { return x * slope }
data {
  train = idx("images", "labels")
  x     : f32[6]
  label : class[3]
}
model {
  y = linear(gelu(relu(x), exact = true), 3)
}
train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
