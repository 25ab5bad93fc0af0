# One hidden layer.
fn mlp(x, hidden, out) {
  h = relu(linear(x, hidden))
  return linear(h, out)
}
